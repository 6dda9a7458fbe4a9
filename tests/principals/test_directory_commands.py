"""A site's first people, labs and tokens are made by command."""

from importlib import import_module
from io import StringIO

import pytest
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection

from portal.core.models import AuditEvent
from principals.auth import actor_for_token
from principals.models import Cluster, LabMembership, ServiceToken, SignInIdentity, User
from tests import factories


def _run(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


def test_add_person_gives_roles_and_a_place(db: None) -> None:
    assert "pi of okafor" in _run("add_person", "u0398", "--lab", "okafor", "--role", "pi")
    membership = LabMembership.objects.get()
    assert (membership.user.username, membership.lab.name, membership.role) == ("u0398", "okafor", "pi")
    assert not membership.user.has_usable_password()
    _run("add_person", "u0398", "--staff")
    assert User.objects.get().is_research_computing
    assert AuditEvent.objects.filter(verb="person.add").count() == 2


def test_add_person_says_what_it_kept_and_changed_of_somebody_known(db: None) -> None:
    added = _run("add_person", "u0398", "--staff", "--email", "a@example.org", "--lab", "okafor", "--role", "pi")
    assert added == ("u0398 is added: facility roles: staff; email: a@example.org; role in okafor: pi of okafor.")
    again = _run("add_person", "u0398", "--infosec", "--lab", "okafor").splitlines()
    assert again == [
        "u0398 was known.",
        "  changed: facility roles from staff to staff, infosec",
        "  kept: email (a@example.org); password; role in okafor (pi of okafor)",
        "  To change a role: --staff or --no-staff, likewise infosec and auditor; --lab NAME --role ROLE.",
    ]
    user = User.objects.get()
    assert (user.is_research_computing, user.is_infosec, user.is_auditor) == (True, True, False)
    assert LabMembership.objects.get().role == "pi"


def test_add_person_takes_a_role_away_only_where_it_is_told_to(db: None) -> None:
    _run("add_person", "u0398", "--staff", "--auditor", "--lab", "okafor", "--role", "pi")
    words = _run("add_person", "u0398", "--no-staff", "--lab", "okafor", "--role", "member")
    assert "facility roles from staff, auditor to auditor" in words
    assert "role in okafor from pi of okafor to member of okafor" in words
    user = User.objects.get()
    assert (user.is_research_computing, user.is_auditor) == (False, True)
    assert LabMembership.objects.get().role == "member"
    assert "changed: nothing" in _run("add_person", "u0398")


def test_add_person_switches_an_account_off_and_takes_away_what_opens_it(db: None) -> None:
    user = factories.make_user("u0398", roles_from_groups=["staff"], is_research_computing=True)
    SignInIdentity.objects.create(user=user, issuer="https://id.example.org", subject="7")
    Authenticator.objects.create(user=user, type="totp", data={})
    said = _run("add_person", "u0398", "--no-active", "--no-second-factor", "--forget-identities", "--no-staff")
    assert "account is off" in said and "taken away" in said and "untied: 1" in said
    user.refresh_from_db()
    assert (user.is_active, user.is_research_computing, user.roles_from_groups) == (False, False, [])
    assert not SignInIdentity.objects.exists() and not Authenticator.objects.exists()
    assert "account is on" in _run("add_person", "u0398", "--active")
    verbs = AuditEvent.objects.exclude(verb="person.add").order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == [
        "person.switch_off", "person.second_factor_remove", "person.forget_identities", "person.switch_on",
    ]  # fmt: skip


def test_a_service_is_bound_to_no_cluster_of_an_impossible_name(db: None) -> None:
    with pytest.raises(CommandError, match="A cluster's name has 1 to 40 letters"):
        _run("issue_service_token", "reader", "--cluster", "../aster")
    assert not Cluster.objects.exists()


def test_add_person_claims_their_login_names(db: None) -> None:
    cluster = factories.make_cluster()
    known = cluster.cluster_users.create(login="u0398")
    _run("add_person", "u0398")
    known.refresh_from_db()
    assert known.user == User.objects.get()


@pytest.mark.parametrize("login", ["", "a b", "x" * 65, "<script>"])
def test_add_person_refuses_an_odd_login(db: None, login: str) -> None:
    with pytest.raises(CommandError, match="login name"):
        _run("add_person", login)


def test_issue_service_token_prints_a_token_that_works(db: None) -> None:
    plain = _run("issue_service_token", "reader", "--cluster", "aster", "--scope", "ingest:jobs")
    actor = actor_for_token(plain, address="192.0.2.1")
    assert actor.service is not None and actor.service.cluster is not None
    assert (actor.service.cluster.name, actor.scopes) == ("aster", frozenset({"ingest:jobs"}))
    assert "1 token of" in _run("issue_service_token", "reader", "--revoke")
    assert ServiceToken.objects.get().state == "revoked"


def test_issue_service_token_refuses_a_life_too_long(db: None) -> None:
    with pytest.raises(CommandError):
        _run("issue_service_token", "reader", "--days", "900")


def test_publish_aup_round_trip(db: None, tmp_path) -> None:  # type: ignore[no-untyped-def]
    source = _run("publish_aup", "--show")
    assert "# Acceptable use" in _run("publish_aup", "--markdown")
    file = tmp_path / "aup.toml"
    file.write_text(source.replace('version = "2026-06"', 'version = "2026-12"'))
    assert "AUP 2026-12 is published" in _run("publish_aup", str(file))
    with pytest.raises(CommandError, match="published already"):
        _run("publish_aup", str(file))
    with pytest.raises(CommandError, match="No such file"):
        _run("publish_aup", str(tmp_path / "none.toml"))


def test_clusters_of_before_that_differ_in_case_alone_are_told_apart(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX principals_cluster_in_any_case")
    first, twin = Cluster.objects.create(name="alpha"), Cluster.objects.create(name="Alpha")

    import_module("principals.migrations.0003_cluster_in_any_case").rename_twins(apps, None)

    assert list(Cluster.objects.order_by("pk").values_list("name", flat=True)) == ["alpha", f"Alpha-{twin.pk}"]
    assert first.pk < twin.pk
