"""Who it is that a provider sends: one person, one identity; and the roles that follow from groups."""

from allauth.mfa.models import Authenticator
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from portal.core import audit
from portal.core.errors import Conflict, NotAllowed
from principals import permissions
from principals.actors import Actor
from principals.engine.claims import Claims, Roles, same_address, settle
from principals.models import SignInIdentity, User
from principals.services.directory import ROLE_COLUMNS, add_person

_ASK = "Ask the facility’s staff; the number below tells them which sign-in it was."


def person_behind(*, actor: Actor, claims: Claims, add_unknown: bool) -> User:
    """Return the person whom the provider sends.

    By issuer and subject; the first time by login name, then by verified address, and never a person who is known
    under another subject there: names and addresses are given to others after somebody leaves.

    Errors: `NotAllowed` for people who are unknown or switched off, `Conflict` where two could be meant.
    """
    permissions.require(actor, "facility.run")
    known = SignInIdentity.objects.filter(issuer=claims.issuer, subject=claims.subject).select_related("user").first()
    user = known.user if known else _tie(actor, claims, add_unknown=add_unknown)
    if not user.is_active:
        raise NotAllowed("This account is switched off.", code="person_inactive", remedy=_ASK)
    return user


def person_named(*, actor: Actor, login: str, add_unknown: bool) -> User:
    """Return the person of a login name, as a front that the site trusts says it.

    Errors: `NotAllowed` for people who are unknown or switched off, `Invalid` for what is no login name.
    """
    permissions.require(actor, "facility.run")
    user = User.objects.filter(username=login).first()
    if user is None:
        user = _add(actor, Claims(issuer="", subject="", login=login), add_unknown=add_unknown)
    if not user.is_active:
        raise NotAllowed("This account is switched off.", code="person_inactive", remedy=_ASK)
    return user


def _tie(actor: Actor, claims: Claims, *, add_unknown: bool) -> User:
    try:
        with transaction.atomic():
            user = _match(claims) or _add(actor, claims, add_unknown=add_unknown)
            if user.is_active:
                SignInIdentity.objects.create(user=user, issuer=claims.issuer, subject=claims.subject)
                _record(actor, "person.tie_identity", user, after={"issuer": claims.issuer})
            return user
    except IntegrityError:  # the same person signs in twice at once, or somebody else was faster
        found = SignInIdentity.objects.filter(issuer=claims.issuer, subject=claims.subject).first()
        if found is None:
            raise _taken() from None
        return found.user


def _match(claims: Claims) -> User | None:
    """Return whom the claims mean, of those who are here. Errors: `Conflict`."""
    found = User.objects.filter(username=claims.login).first() if claims.login else None
    if found is None and claims.email:
        near = User.objects.filter(email__iexact=claims.email)
        people = [user for user in near if same_address(user.email, claims.email)]
        if len(people) > 1:
            raise Conflict("Several accounts here have this address.", code="address_shared", remedy=_ASK)
        found = people[0] if people else None
        # Where login names are told, an address does not lead to somebody of another name.
        if found is not None and claims.login:
            raise Conflict(
                "The provider’s login name is not the one that this address has here.", code="login_differs",
                remedy=_ASK,
            )  # fmt: skip
    if found is not None and found.identities.filter(issuer=claims.issuer).exists():
        raise _taken()
    return found


def _add(actor: Actor, claims: Claims, *, add_unknown: bool) -> User:
    if not add_unknown or not claims.login:
        raise NotAllowed(
            "You have signed in there, and nobody here is known by that account.", code="person_unknown",
            remedy="Ask the facility’s staff to add you; then sign in again.",
        )  # fmt: skip
    return add_person(actor=actor, login=claims.login, email=claims.email, roles={})


def _taken() -> Conflict:
    return Conflict(
        "The account here of that name belongs to another account of the provider.", code="identity_taken", remedy=_ASK
    )


def settle_roles(*, actor: Actor, user: User, wanted: frozenset[str]) -> bool:
    """Give a person the roles of their groups and take those that groups gave before; say whether any changed.

    A role that was given by hand stays.
    """
    permissions.require(actor, "facility.run")
    with transaction.atomic():
        row = User.objects.select_for_update().get(pk=user.pk)
        now = Roles(_held(row), frozenset(row.roles_from_groups))
        then = settle(now, wanted)
        if then == now:
            return False
        for role, column in ROLE_COLUMNS.items():
            setattr(row, column, role in then.held)
        row.roles_from_groups = sorted(then.from_groups)
        row.save(update_fields=[*ROLE_COLUMNS.values(), "roles_from_groups"])
        before, after = sorted(now.held), sorted(then.held)
        if before != after:
            _record(actor, "person.settle_roles", row, before={"roles": before}, after={"roles": after})
    user.refresh_from_db(fields=[*ROLE_COLUMNS.values(), "roles_from_groups"])
    return before != after


def forget_identities(*, actor: Actor, user: User) -> int:
    """Untie a person from every provider: the next sign-in ties them anew. Return how many there were.

    Who signs in there alone is signed out: whoever was tied wrongly would go on for as long as a session lasts.
    """
    permissions.require(actor, "facility.run")
    with transaction.atomic():
        identities: QuerySet[SignInIdentity] = user.identities.all()
        issuers = sorted(identities.values_list("issuer", flat=True))
        if issuers:
            identities.delete()
            if not user.has_usable_password():
                user.set_unusable_password()  # another one, and sessions hang on it
                user.save(update_fields=["password"])
            _record(actor, "person.forget_identities", user, before={"issuers": issuers})
    return len(issuers)


def record_second_factor(*, actor: Actor, user: User, act: str) -> None:
    """Write down that somebody set up, removed or renewed their second factor, in the transaction of that act."""
    if actor.user != user:
        permissions.require(actor, "facility.run")
    _record(actor, f"person.second_factor_{act}", user)


def remove_second_factor(*, actor: Actor, user: User) -> bool:
    """Take a person's second factor away, for whoever lost it; say whether there was one."""
    permissions.require(actor, "facility.run")
    with transaction.atomic():
        removed, _ = Authenticator.objects.filter(user=user).delete()
        if removed:
            record_second_factor(actor=actor, user=user, act="remove")
    return bool(removed)


def _held(user: User) -> frozenset[str]:
    return frozenset(role for role, column in ROLE_COLUMNS.items() if getattr(user, column))


def _record(
    actor: Actor, verb: str, user: User, *, before: dict[str, object] | None = None,
    after: dict[str, object] | None = None,
) -> None:  # fmt: skip
    audit.record(
        actor=actor.ref, verb=verb, object_kind="user", object_id=user.pk, object_label=user.username,
        before=before, after=after,
    )  # fmt: skip
