"""Compliance of a lab: kept only where somebody measured it, and never where nobody did."""

from datetime import timedelta

import pytest

from policies import selectors as policy_selectors
from policies import services as policy_services
from policies.engine.aup import write_aup
from policies.engine.packs import read_pack
from policies.models import AupVersion
from policies.selectors import Kept
from portal.core import clock
from principals.actors import SYSTEM_ACTOR
from principals.models import AgentSession
from telemetry.engine.activity import ALL
from telemetry.engine.commands import traits
from telemetry.models import ActivityDay, PollingLoop
from telemetry.selectors import Period
from tests import factories
from tests.conftest import Cast, sign_in
from tests.security.support import make_incident


def _publish(pack: str) -> AupVersion:
    source = write_aup(read_pack(pack)).replace('"draft"', '"2026-12"', 1)
    return policy_services.publish_aup(actor=SYSTEM_ACTOR, source=source)


def _session(cast: Cast, **fields: object) -> AgentSession:
    user = factories.make_cluster_user(cast.cluster, cast.colleague)
    defaults = {"host": "login01", "harness": "claude-code", "agent": cast.agent, "started": clock.now()}
    return AgentSession.objects.create(cluster=cast.cluster, cluster_user=user, **(defaults | fields))


def _day(session: AgentSession, minutes: int, **counts: int) -> None:
    ActivityDay.objects.create(
        cluster=session.cluster, day=clock.now().date(), host=session.host, session=session, driver="agent",
        cluster_user=session.cluster_user, minutes=minutes, counts={ALL: sum(counts.values()), **counts},
    )  # fmt: skip


def _standing(cast: Cast, version: AupVersion) -> dict[str, tuple[Kept, float | None]]:
    rows = policy_selectors.compliance(factories.actor_of(cast.pi), cast.lab, Period.last_days(30), version)
    return {row.clause.type: (row.kept, row.measured) for row in rows}


def test_where_nothing_was_seen_nothing_is_kept(cast: Cast) -> None:
    version = _publish("cautious")
    standing = _standing(cast, version)
    assert standing["accountability.user"] == (Kept.NOT_KEPT, 1)
    assert standing["scheduler.portal_questions"] == (Kept.REFUSED, None)
    assert standing["autonomy.unattended"] == (Kept.DECLARED, None)
    assert standing["compute.login_node"] == (Kept.NOT_YET, None)
    assert standing["fs.tmp"] == (Kept.UNVERIFIED, None)
    for unseen in ("sessions.max", "scheduler.no_loops", "site.no_loops_at_all", "fs.no_wide_walk"):
        assert standing[unseen] == (Kept.UNSEEN, None)
    assert Kept.KEPT not in {kept for kept, _ in standing.values()}


def test_what_is_measured_within_the_limit_is_kept(cast: Cast) -> None:
    version = _publish("cautious")
    _day(_session(cast), 10, **{traits.QUERY: 10})
    policy_services.accept_aup(actor=factories.actor_of(cast.pi), agent=cast.agent, version="2026-12")
    standing = _standing(cast, version)
    assert standing["scheduler.no_loops"] == (Kept.KEPT, 1)
    assert standing["accountability.user"] == (Kept.KEPT, 0)
    assert standing["sessions.max"] == (Kept.KEPT, 1)
    assert standing["site.no_loops_at_all"] == (Kept.KEPT, 0)
    assert standing["secrets.out_of_reach"] == (Kept.UNSEEN, None)


def test_what_is_beyond_it_is_not(cast: Cast) -> None:
    version = _publish("cautious")
    first = _session(cast)
    _session(cast, started=clock.now() - timedelta(hours=1))
    _day(first, 10, **{traits.QUERY: 11, traits.TREE_WALK: 3})
    PollingLoop.objects.create(session=first, first=clock.now(), last=clock.now(), queries=40, period_s=5)
    make_incident(cast)
    standing = _standing(cast, version)
    assert standing["scheduler.no_loops"] == (Kept.NOT_KEPT, pytest.approx(1.1))
    assert standing["sessions.max"] == (Kept.NOT_KEPT, 2)
    assert standing["site.no_loops_at_all"] == (Kept.NOT_KEPT, 1)
    assert standing["fs.no_wide_walk"] == (Kept.SIGN, 3)
    assert standing["secrets.out_of_reach"] == (Kept.NOT_KEPT, 1)


def test_an_agent_in_its_grace_breaks_nothing(cast: Cast) -> None:
    first = policy_services.current_aup()
    policy_services.accept_aup(actor=factories.actor_of(cast.pi), agent=cast.agent, version=first.version)
    version = _publish("cautious")
    assert _standing(cast, version)["accountability.user"] == (Kept.KEPT, 0)
    with clock.at(version.holds_from):
        assert _standing(cast, version)["accountability.user"] == (Kept.NOT_KEPT, 1)


def test_agents_on_login_nodes_break_a_policy_of_jobs_only(cast: Cast) -> None:
    version = _publish("compute-only")
    session = _session(cast, place=AgentSession.Place.JOB)
    assert _standing(cast, version)["locus.login_node"] == (Kept.KEPT, 0)
    AgentSession.objects.filter(pk=session.pk).update(place=AgentSession.Place.LOGIN)
    assert _standing(cast, version)["locus.login_node"] == (Kept.NOT_KEPT, 1)


def test_it_asks_a_bounded_number_of_questions(cast: Cast, django_assert_max_num_queries) -> None:
    version = _publish("cautious")
    for _ in range(3):
        _day(_session(cast, started=clock.now() - timedelta(minutes=_)), 5, **{traits.QUERY: 1})
    actor = factories.actor_of(cast.pi)
    with django_assert_max_num_queries(12):
        policy_selectors.compliance(actor, cast.lab, Period.last_days(30), version)


@pytest.mark.parametrize(
    ("who", "status"),
    [("pi", 200), ("staff", 200), ("auditor", 200), ("colleague", 404), ("outsider", 404)],
)
def test_only_who_may_look_into_a_lab_sees_its_standing(cast: Cast, who: str, status: int) -> None:
    client = sign_in(getattr(cast, who))
    answer = client.get("/aup/compliance/?lab=okafor")
    assert answer.status_code == status
    if status == 200:
        page = answer.content.decode()
        assert "unverified" in page and "not yet enforced" in page
    assert "Okafor" not in sign_in(cast.outsider).get("/aup/compliance/").content.decode()
