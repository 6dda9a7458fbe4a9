"""The Overview: its numbers are the rollups', every part exports what it shows, and only offices see it."""

import csv
import io

import pytest

from principals.models import AgentSession
from telemetry import services as telemetry_services
from telemetry.models import RollupDay, RollupHour, RollupUser
from tests import factories
from tests.conftest import Cast, sign_in
from tests.security.support import make_incident
from tests.telemetry.logs import ingest, job_row, text

DAY = "2026-07-01"


@pytest.fixture
def month(cast: Cast) -> Cast:
    """Two agent jobs and one of a person on one day of July."""
    user = factories.make_cluster_user(cast.cluster, cast.colleague)
    AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=user, host="login01", harness="codex", agent=cast.agent,
        started=1782864000, ended=1782950400,
    )  # fmt: skip
    rows = [
        job_row(number, User=who, Account="okafor_lab", Submit=f"{DAY}T10:00:0{number}", Start=f"{DAY}T10:01:00",
                End=f"{DAY}T11:01:00")
        for number, who in ((1, "colleague"), (2, "colleague"), (3, "pi"))
    ]  # fmt: skip
    ingest(cast.cluster, text(*rows))
    telemetry_services.catch_up(cluster=cast.cluster)
    return cast


def test_it_says_how_many_of_the_open_incidents_it_lists(month: Cast) -> None:
    make_incident(month)
    assert "are shown." not in sign_in(month.staff).get("/overview/?period=2026-07").content.decode()
    for owner in (month.pi, month.manager, month.colleague, month.outsider, month.staff):
        lab = month.other_lab if owner == month.outsider else month.lab
        make_incident(month, agent=factories.make_agent(lab, owner).name)
    page = sign_in(month.staff).get("/overview/?period=2026-07").content.decode()
    assert "4 of 6 are shown." in page


def test_its_numbers_are_the_rollups(month: Cast) -> None:
    page = sign_in(month.staff).get("/overview/?period=2026-07&definition=job").content.decode()
    assert "All harnesses" in page and "Codex" not in page, "one person's harness stands under no name"
    assert f"{sum(RollupDay.objects.values_list('submissions', flat=True))} jobs" in page
    rows = sign_in(month.staff).get("/overview/shares.json?period=2026-07&definition=job").json()
    submissions = next(row for row in rows if row["measure"] == "Submissions")
    assert (submissions["agent"], submissions["human"], submissions["unknown"]) == (2, 0, 1)


@pytest.mark.parametrize("name", ["shares", "hour-of-week", "days", "harnesses", "labs", "runtimes", "gpu-use"])
def test_every_part_exports_the_same_as_csv_and_json(month: Cast, name: str) -> None:
    client = sign_in(month.staff)
    rows = client.get(f"/overview/{name}.json?period=2026-07").json()
    lines = list(
        csv.DictReader(io.StringIO(b"".join(_body(client.get(f"/overview/{name}.csv?period=2026-07"))).decode()))
    )
    assert len(rows) == len(lines) > 0
    assert list(rows[0]) == list(lines[0])


def _body(response):  # type: ignore[no-untyped-def]
    return response.streaming_content if response.streaming else [response.content]


@pytest.mark.parametrize("name", ["days", "runtimes", "hour-of-week-agent", "hour-of-week-human"])
def test_every_figure_can_be_drawn(month: Cast, name: str) -> None:
    figure = sign_in(month.staff).get(f"/overview/{name}.figure?period=2026-07").json()
    assert figure["data"]


def test_where_there_is_none_of_something_it_says_so(cast: Cast) -> None:
    row = job_row(1, User="pi", Account="okafor_lab", Submit=f"{DAY}T10:00:00", State="PENDING", Start="Unknown",
                  End="Unknown", ElapsedRaw="0")  # fmt: skip
    ingest(cast.cluster, text(row))
    telemetry_services.catch_up(cluster=cast.cluster)
    context = sign_in(cast.staff).get("/overview/?period=2026-07").context
    assert [figure["of"] for figure in context["kpis"]] == [
        "0 of 1", "no GPU-hours in this period", "no agent session is known yet",
        "no job of an agent ended in this period", "no job of an agent ended in this period",
    ]  # fmt: skip
    assert [row["label"] for row in context["share_rows"]] == ["People", "Submissions"]
    assert "There are no core-hours and no GPU-hours in this period." in context["unknown"]
    assert "no submission of an agent or a person is known yet" in context["week_sub"]


def test_there_is_no_change_against_days_nobody_recorded(month: Cast) -> None:
    assert " pt<" not in sign_in(month.staff).get("/overview/?period=2026-07").content.decode()


def test_an_empty_house_says_what_to_do(cast: Cast) -> None:
    assert "ingest_jobs" in sign_in(cast.staff).get("/overview/").content.decode()


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("period=abc", "Period “abc” is not known here: shown is “Last 30 days”."),
        ("period=2026-13", "Period “2026-13” is not known here: shown is “Last 30 days”."),
        ("cluster=nope", "Cluster “nope” is not known here: shown is “aster”."),
        ("definition=x", "Counted as agent “x” is not known here: shown is “Job fell into an agent session”."),
    ],
)
def test_what_is_not_known_falls_back_and_is_said_but_never_exported(month: Cast, query: str, note: str) -> None:
    client = sign_in(month.staff)
    assert note in client.get(f"/overview/?{query}").content.decode()
    assert "filters__note" not in client.get("/overview/?period=2026-07&cluster=aster").content.decode()
    if "definition" not in query:
        assert client.get(f"/overview/shares.csv?{query}").status_code in {404, 422}


def test_it_asks_a_bounded_number_of_questions(month: Cast, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    client = sign_in(month.staff)
    client.get("/overview/?period=2026-07")
    with django_assert_max_num_queries(48):
        client.get("/overview/?period=2026-07")


def words_of(month: Cast) -> dict[str, str]:
    context = sign_in(month.staff).get("/overview/?period=2026-07&definition=job").context
    return {name: context[name] for name in ("days_title", "harness_title", "harness_note")}


def test_a_young_site_is_told_of_the_one_day_it_has(month: Cast) -> None:
    assert words_of(month) == {
        "days_title": "Agents submit more than everybody else on the one day with jobs",
        "harness_title": "Agents’ jobs by harness",
        "harness_note": "Of fewer than 5 people: shown without its name",
    }
    page = sign_in(month.staff).get("/overview/?period=2026-07").content.decode()
    assert "other lab" not in page and "1 lab of fewer than five people shown without its name" in page


def test_a_house_without_agents_is_not_told_of_none_of_its_days(month: Cast) -> None:
    for rollups in (RollupUser, RollupHour):
        rollups.objects.filter(actor="agent").delete()
    assert words_of(month) == {
        "days_title": "No agent submitted a job in this period",
        "harness_title": "No agent submitted a job in this period", "harness_note": "",
    }  # fmt: skip
