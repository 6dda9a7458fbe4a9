"""Erasing and giving out where names collide, or somebody ends the command half-way."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from portal.core.errors import Conflict
from portal.rights import services
from principals.actors import SYSTEM_ACTOR
from principals.models import Agent, ClusterUser, KillSwitch, User
from tests import factories
from tests.conftest import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


@pytest.fixture
def person(cast: Cast) -> User:
    return factories.make_user("a")


def erase(person: User) -> None:
    services.erase(actor=SYSTEM_ACTOR, person=person, reason="asked for")


def test_two_logins_of_one_cluster_get_a_pseudonym_each(cast: Cast, person: User) -> None:
    for login in ("a", "a_extra"):
        ClusterUser.objects.create(cluster=cast.cluster, login=login, user=person)
    erase(person)
    logins = ClusterUser.objects.filter(user=person).values_list("login", flat=True)
    assert len(set(logins)) == 2 and all(login.startswith(f"erased-{person.pk}") for login in logins)


@pytest.mark.parametrize("kind", ["person", "login", "agent"])
def test_a_name_that_is_taken_refuses_before_anything_is_erased(cast: Cast, person: User, kind: str) -> None:
    name = services.pseudonym(person)
    ClusterUser.objects.create(cluster=cast.cluster, login="a", user=person)
    if kind == "person":
        factories.make_user(name)
    elif kind == "login":
        ClusterUser.objects.create(cluster=cast.cluster, login=name)
    else:
        own = factories.make_agent(cast.lab, person)
        Agent.objects.filter(pk=cast.agent.pk).update(name=f"erased-agent-{own.pk}")
    with pytest.raises(Conflict) as refused:
        erase(person)
    assert refused.value.code == "pseudonym_taken"
    person.refresh_from_db()
    assert person.username == "a" and person.is_active


def test_a_short_name_is_replaced_as_a_word_alone(cast: Cast, person: User) -> None:
    switch = KillSwitch.objects.create(
        target_kind="owner", target_id=person.pk, target_label="all agents of a", reason="x", asked_by=cast.staff,
        until=cast.agent.expires,
    )  # fmt: skip
    erase(person)
    switch.refresh_from_db()
    assert switch.target_label == f"all agents of erased-{person.pk}"


def test_a_refused_export_leaves_no_file_and_one_that_ends_half_way_no_whole_one(
    person: User, tmp_path: Path, monkeypatch
) -> None:
    target = tmp_path / "a.json"
    with pytest.raises(CommandError):
        call_command("subject", "export", "a", "--out", str(target), stdout=StringIO())
    assert list(tmp_path.iterdir()) == []

    def half(_: User):
        yield "{"
        raise KeyboardInterrupt

    line = ("subject", "export", "a", "--purpose", "asked for", "--out", str(target))
    with monkeypatch.context() as patched:
        patched.setattr(services, "export", half)
        with pytest.raises(KeyboardInterrupt):
            call_command(*line, stdout=StringIO())
    assert not target.exists()
    call_command(*line, stdout=StringIO())
    assert target.stat().st_mode & 0o777 == 0o600 and target.read_text().startswith("{")
    with pytest.raises(CommandError, match="written"):
        call_command(*line, stdout=StringIO())
