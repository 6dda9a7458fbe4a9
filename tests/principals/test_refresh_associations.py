"""Associations follow what Slurm tells; people, logins and accounts stay."""

from typing import Any

import pytest

from portal.core.errors import Invalid, NotAllowed
from portal.core.models import AuditEvent
from principals import services
from principals.actors import SYSTEM_ACTOR
from principals.models import Association, ClusterUser, SlurmAccount, User
from principals.permissions import actor_for_user
from principals.services import AssociationChanges, ToldAssociation
from tests.conftest import Cast

ADA = ToldAssociation("ada", "chem", qos=("normal",), is_default=True)
BOB = ToldAssociation("bob", "chem", qos=("normal", "trial"), is_default=True)


def refresh(cast: Cast, *told: ToldAssociation) -> AssociationChanges:
    return services.refresh_associations(actor=SYSTEM_ACTOR, cluster=cast.cluster, told=told)


def stored() -> dict[str, tuple[list[str], bool, bool]]:
    rows = Association.objects.select_related("cluster_user")
    return {row.cluster_user.login: (row.qos, row.is_default, row.ended is None) for row in rows}


def test_it_works(cast: Cast) -> None:
    assert refresh(cast, ADA, BOB) == (2, 0, 0)
    assert stored() == {"ada": (["normal"], True, True), "bob": (["normal", "trial"], True, True)}
    assert refresh(cast, ADA, BOB._replace(qos=("normal",))) == (0, 1, 0)
    assert stored()["bob"] == (["normal"], True, True)


def test_what_vanished_is_ended_and_comes_back_as_the_same_row(cast: Cast) -> None:
    refresh(cast, ADA, BOB)
    people, row = User.objects.count(), Association.objects.get(cluster_user__login="bob").pk
    assert refresh(cast, ADA) == (0, 0, 1)
    assert stored()["bob"][2] is False
    ended = Association.objects.get(pk=row).ended
    assert refresh(cast, ADA) == (0, 0, 0)
    assert Association.objects.get(pk=row).ended == ended
    assert User.objects.count() == people
    assert ClusterUser.objects.filter(login="bob").exists() and SlurmAccount.objects.filter(name="chem").exists()
    assert refresh(cast, ADA, BOB) == (0, 1, 0)
    assert Association.objects.get(cluster_user__login="bob").pk == row
    assert stored()["bob"][2] is True


def test_a_login_that_is_a_person_becomes_theirs(cast: Cast) -> None:
    refresh(cast, ToldAssociation("staff", "chem"))
    assert ClusterUser.objects.get(cluster=cast.cluster, login="staff").user == cast.staff


def test_a_partition_of_its_own_is_an_association_of_its_own(cast: Cast) -> None:
    assert refresh(cast, ADA, ADA._replace(partition="gpu", is_default=False)) == (2, 0, 0)
    assert Association.objects.filter(cluster_user__login="ada").count() == 2


def test_one_audit_row_says_what_changed_and_none_where_nothing_did(cast: Cast) -> None:
    events = AuditEvent.objects.filter(verb="association.refresh")
    refresh(cast, ADA, BOB)
    refresh(cast, ADA, BOB)
    assert events.get().payload["after"] == {"created": {"count": 2, "some": ["ada@chem", "bob@chem"]}}
    refresh(cast, ADA._replace(partition="gpu"), BOB)
    assert events.latest("pk").payload["after"] == {
        "created": {"count": 1, "some": ["ada@chem in gpu"]}, "ended": {"count": 1, "some": ["ada@chem"]},
    }  # fmt: skip


def test_a_sweep_of_another_cluster_ends_nothing_here(cast: Cast) -> None:
    refresh(cast, ADA)
    other = services.ensure_cluster("borealis")
    services.refresh_associations(actor=SYSTEM_ACTOR, cluster=other, told=[BOB])
    assert stored()["ada"][2] is True


def test_no_association_at_all_is_not_believed(cast: Cast) -> None:
    refresh(cast, ADA)
    with pytest.raises(Invalid):
        refresh(cast)
    assert stored()["ada"][2] is True


def test_it_validates_who_asks(cast: Cast) -> None:
    for user in (cast.pi, cast.infosec, cast.auditor):
        with pytest.raises(NotAllowed):
            services.refresh_associations(actor=actor_for_user(user), cluster=cast.cluster, told=[ADA])


def test_many_changes_are_written_in_parts_each_with_its_audit_row(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("principals.services.associations.AT_A_TIME", 2)
    many = [ToldAssociation(f"u{number}", "chem") for number in range(5)]
    assert refresh(cast, *many) == (5, 0, 0)
    parts = AuditEvent.objects.filter(verb="association.refresh").order_by("pk")
    assert [part.payload["after"]["created"]["count"] for part in parts] == [2, 2, 1]
    assert refresh(cast, *many[:2], ADA) == (1, 0, 3)
    assert sum(alive for *_, alive in stored().values()) == 3


def test_nothing_changed_costs_the_same_for_many(cast: Cast, django_assert_max_num_queries: Any) -> None:
    many = [ToldAssociation(f"u{number}", "chem", qos=("normal",)) for number in range(300)]
    refresh(cast, *many)
    with django_assert_max_num_queries(4):
        assert refresh(cast, *many) == (0, 0, 0)
