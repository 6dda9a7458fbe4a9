"""What is shown of login nodes: to an agent's people its own, to a lab its agents' together, to staff the nodes."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core import clock
from telemetry import services
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.activity_batches import AGENT, agent_session, batch, counted, minute, record

pytestmark = [pytest.mark.django_db, pytest.mark.sql, pytest.mark.usefixtures("standing_clock")]
CODEX = "900-1"


def told(cast: Cast, *, host: str = "login1", **fields: Any) -> None:
    """A quarter of an hour of a node: a registered agent, a harness nobody registered, people, and unknown drivers."""
    acts: dict[str, Any] = {
        "sessions": [agent_session(), agent_session(id=CODEX, harness="codex")],
        "minutes": [
            counted(commands=6, category__slurm=4, scheduler_query=3, submission=1), counted(ago=9, commands=2),
            counted(CODEX, commands=90, category__build=88), counted("", "human", commands=12),
            counted("", "unknown", commands=8),
        ],
        "polling": [{"session": AGENT, "first": minute(12), "last": minute(9), "queries": 3, "period_s": 60}],
        "loops": [{"session": AGENT, "submitted": minute(60), "again": minute(9)}],
    }  # fmt: skip
    record(cast.cluster, **{"host": host, "batch": str(uuid4())} | acts | fields)
    services.refresh_activity()


def words(page: Any) -> str:
    text = re.sub(r"<[^>]+>", " ", page.content.decode())
    return re.sub(r"\s+", " ", text.replace("\u202f", "").replace("\xa0", " "))


# --- an agent, a lab ---------------------------------------------------------------------------------------
def agent_page(cast: Cast, who: str) -> Any:
    return sign_in(getattr(cast, who)).get(cast.agent.get_absolute_url())


def test_an_agents_page_says_what_its_sessions_did(cast: Cast):
    told(cast)
    page = agent_page(cast, "pi")
    panel = page.context["activity"]
    assert (panel.found.commands, panel.found.minutes, panel.found.queries, panel.found.submissions) == (8, 2, 3, 1)
    assert (panel.found.rate, panel.loops.polling, panel.loops.polled, panel.loops.experiments) == (4.0, 1, 3, 1)
    shares = {row["title"]: row["commands"] for row in panel.rows}
    assert shares["Slurm operations"] == 4 and shares["Text and file tools"] == 4
    assert shares["Build and compilation"] == 0, "the other session is not its own"
    shown = words(page)
    assert "4 commands a minute" in shown or "4.0 commands a minute" in shown
    for said in (panel.definition, panel.limitation, "Sessions of okafor-docking", "1 session"):
        assert said in shown
    assert "3.0 for each submission" in shown


@pytest.mark.parametrize("who", ["colleague", "pi", "manager", "staff", "auditor"])
def test_those_who_see_its_sessions_see_its_activity(cast: Cast, who: str):
    told(cast)
    assert agent_page(cast, who).context["activity"].found.commands == 8


def test_a_member_who_does_not_manage_the_lab_sees_nothing_of_a_colleagues_agent(cast: Cast):
    told(cast)
    member = factories.make_user("member")
    cast.lab.memberships.create(user=member, role="member")
    page = sign_in(member).get(cast.agent.get_absolute_url())
    assert page.status_code == 200 and page.context["activity"] is None
    assert 'id="activity"' not in page.content.decode()


def test_without_a_collector_there_is_no_panel(cast: Cast):
    assert 'id="activity"' not in agent_page(cast, "pi").content.decode()


def test_my_lab_adds_its_registered_agents_up_and_names_nobody(cast: Cast):
    factories.make_agent(cast.lab, cast.pi, "okafor-codex", harness="codex")
    pi_session = agent_session(id="77-1", harness="codex", user="pi")
    told(cast)
    record(cast.cluster, sessions=[pi_session], minutes=[counted("77-1", commands=4)])
    services.refresh_activity()
    page = sign_in(cast.pi).get("/my-lab/")
    panel = page.context["activity"]
    assert (panel.found.commands, panel.found.sessions) == (12, 2), "what nobody registered is not the lab's"
    section = page.content.decode().split('id="activity"')[1].split("</section>")[0]
    assert "colleague" not in section and "okafor-docking" not in section


@pytest.mark.parametrize("who", ["colleague"])
def test_my_lab_shows_the_labs_activity_to_those_who_may_look_at_its_jobs(cast: Cast, who: str):
    told(cast)
    assert sign_in(getattr(cast, who)).get("/my-lab/").context["activity"] is None


def test_what_is_older_than_thirty_days_is_not_in_it(cast: Cast):
    with clock.at(clock.now() - timedelta(days=31)):
        told(cast)
    assert agent_page(cast, "pi").context["activity"] is None


# --- the nodes ---------------------------------------------------------------------------------------------
def nodes_page(cast: Cast, query: str = "") -> Any:
    return sign_in(cast.staff).get(f"/login-nodes/{query}")


def test_it_says_how_collectors_do_and_who_drives_what(cast: Cast):
    health = {"events": 1000, "lost": 7, "argv_missed": 20, "vanished": 1, "sampled_share": 0.5, "cpu_s": 8.4,
              "memory_bytes": 41_000_000, "processes": 212}  # fmt: skip
    told(cast, health=health)
    told(cast, host="login2", mode="walk", minutes=[], polling=[], loops=[], sessions=[])
    first, second = nodes_page(cast).context["nodes"]
    assert (first.host, first.mode, first.lost, first.argv_missed_share) == ("login1", "Kernel events", 7, 0.02)
    assert (first.sampled_share, first.registered, first.unregistered) == (0.5, 1, 1)
    assert first.cpu_share == pytest.approx(8.4 / (14 * 60))
    assert dict(first.commands.by_driver) == {"agent": 98, "human": 12, "unknown": 8}
    assert first.commands.unknown_share == pytest.approx(8 / 118)
    assert (second.mode, second.commands.total, second.commands.unknown_share) == ("Walks of /proc", 0, None)
    shown = words(nodes_page(cast))
    assert "50.0%" in shown and "People are observed" not in shown
    assert "No study: people are not observed" in shown
    assert "colleague" not in shown, "nobody is named"


def test_the_composition_is_shares_of_each_drivers_commands(cast: Cast):
    told(cast)
    rows = {row["title"]: [cell["share"] for cell in row["cells"]] for row in nodes_page(cast).context["composition"]}
    assert rows["Build and compilation"] == [pytest.approx(88 / 98), 0, 0]
    assert rows["Text and file tools"] == [pytest.approx(6 / 98), pytest.approx(2 / 12), pytest.approx(2 / 8)]


def test_a_node_that_fell_silent_stays_on_the_page(cast: Cast):
    told(cast)
    with clock.at(clock.now() + timedelta(days=3)):
        (node,) = nodes_page(cast).context["nodes"]
        assert (node.batches, node.mode, node.events) == (0, "", 0)
        assert node.heard is not None and node.registered == 1


def test_sessions_that_ended_are_not_now(cast: Cast):
    told(cast, sessions=[agent_session(end=minute(2)), agent_session(id=CODEX, harness="codex", end=minute(2))])
    (node,) = nodes_page(cast).context["nodes"]
    assert (node.registered, node.unregistered) == (0, 0)


def test_the_export_has_every_node(cast: Cast):
    told(cast)
    (row,) = nodes_page(cast, "?format=json").json()
    assert (row["host"], row["state"], row["unknown_commands"], row["registered"]) == ("login1", "current", 8, 1)
    assert b"sampled_share" in nodes_page(cast, "?format=csv").content
    assert nodes_page(cast, "?format=exe").status_code == 422


def test_a_study_is_shown_with_who_approved_it(cast: Cast):
    services.start_study(
        actor=factories.actor_of(cast.staff), cluster=cast.cluster, name="spring", purpose="A baseline.",
        approved_by="IRB 2026-114", until=clock.now() + timedelta(days=3),
    )  # fmt: skip
    shown = words(nodes_page(cast))
    assert all(said in shown for said in ("spring", "A baseline.", "running", "IRB 2026-114"))


def test_the_days_of_a_study_are_utc_on_pages_too(cast: Cast):
    today = datetime.combine(clock.now().astimezone(UTC), time(), UTC)
    services.start_study(
        actor=factories.actor_of(cast.staff), cluster=cast.cluster, name="spring", purpose="A baseline.",
        approved_by="IRB 2026-114", starts=today, until=today + timedelta(days=3),
    )  # fmt: skip
    rows = re.findall(r'<time datetime="([0-9-]+)">', nodes_page(cast).content.decode())
    last = today.date() + timedelta(days=2)
    assert rows[-2:] == [f"{today:%Y-%m-%d}", f"{last}"], "midnight in UTC is the day before in the facility’s zone"


def test_people_read_on_my_lab_that_they_are_observed(cast: Cast):
    unaffiliated = factories.make_user("unaffiliated")
    factories.make_cluster_user(cast.cluster, unaffiliated)
    study = services.start_study(
        actor=factories.actor_of(cast.staff), cluster=cast.cluster, name="spring", purpose="A baseline.",
        approved_by="IRB 2026-114", until=clock.now() + timedelta(days=3),
    )  # fmt: skip
    elsewhere = factories.make_user("elsewhere")
    factories.make_lab("birch", pi=elsewhere)

    def told_to(user: Any) -> bool:
        return "IRB 2026-114" in words(sign_in(user).get("/my-lab/"))

    assert told_to(cast.colleague) and told_to(unaffiliated) and not told_to(elsewhere)
    services.end_study(actor=factories.actor_of(cast.staff), study=study)
    assert not told_to(cast.colleague)


def test_before_a_collector_was_heard_it_says_what_to_do(cast: Cast):
    assert "issue_service_token" in nodes_page(cast).content.decode()


@pytest.mark.parametrize("who", ["pi", "infosec"])
def test_it_is_for_staff_and_auditors(cast: Cast, who: str):
    assert sign_in(getattr(cast, who)).get("/login-nodes/").status_code == 403
    assert sign_in(cast.auditor).get("/login-nodes/").status_code == 200


def test_a_collector_is_a_source_of_ingest_health(cast: Cast):
    told(cast)
    shown = words(sign_in(cast.staff).get("/ingest/"))
    assert re.search(r"login1 activity of aster", shown)


@pytest.mark.parametrize("path", ["/login-nodes/", "/my-lab/", "agent"])
def test_many_nodes_and_days_cost_as_many_queries_as_a_few(cast: Cast, path: str):
    client = sign_in(cast.pi if path == "/my-lab/" else cast.staff)
    address = cast.agent.get_absolute_url() if path == "agent" else path

    def asked() -> int:
        client.get(address)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        return len(queries)

    def tell(numbers: Iterable[int]) -> None:
        for number in numbers:
            with clock.at(clock.now() - timedelta(days=number % 5)):
                told(cast, host=f"login{number}", run=str(uuid4()))

    tell(range(5, 7))
    few = asked()
    tell(range(7, 13))
    assert asked() == few


@pytest.mark.parametrize(("ahead_s", "said"), [(30, ""), (240, "clock 4 min ahead"), (-900, "clock 15 min behind")])
def test_a_node_whose_clock_is_off_says_so(cast: Cast, ahead_s: int, said: str):
    told(cast, health=batch()["health"] | {"clock_ahead_s": ahead_s})
    shown = words(sign_in(cast.staff).get("/login-nodes/"))
    assert said in shown and ("clock" in shown) is bool(said)


def test_a_node_that_the_site_s_own_sensor_watches_says_so(cast: Cast):
    told(cast, mode="records")
    assert "own sensor" in words(sign_in(cast.staff).get("/login-nodes/"))
