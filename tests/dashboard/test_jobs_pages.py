"""The list of jobs, one job, search and home."""

import json
from datetime import timedelta

import pytest
from django.db.models import F

from principals.actors import SYSTEM_ACTOR
from principals.models import AgentSession
from telemetry import selectors, services
from telemetry.models import Job
from telemetry.selectors import job_lists
from tests import factories
from tests.conftest import Cast, sign_in
from tests.dashboard.live_rows import make_job
from tests.telemetry.gpu_rows import gpu_job, reading


def ids(client, query: str) -> set[int]:  # type: ignore[no-untyped-def]
    response = client.get(f"/jobs/?format=json&{query}")
    return {row["raw_id"] for row in json.loads(b"".join(response.streaming_content))}


@pytest.fixture
def jobs(cast: Cast) -> dict[str, Job]:
    pi, outsider = (factories.make_cluster_user(cast.cluster, one) for one in (cast.pi, cast.outsider))
    return {
        "quick": make_job(pi, cast.lab, state="COMPLETED", ago_s=1000, elapsed_s=40, cpus=90, gpus=2),
        "slow": make_job(pi, cast.lab, state="CANCELLED", ago_s=3 * 86_400, elapsed_s=4000, campaign="sweep 1"),
        "waits": make_job(pi, cast.lab, qos="trial", array_tasks=10),
        "theirs": make_job(outsider, cast.other_lab, state="NODE_FAIL", actor="agent", harness="codex"),
    }


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", {"quick", "slow", "waits", "theirs"}),
        ("cluster=aster&max_elapsed_s=60", {"quick"}),
        ("cluster=ASTER&max_elapsed_s=60", {"quick"}),
        ("cluster=boreas", set()),
        ("state=CANCELLED", {"slow"}),
        ("state=FAILED", {"theirs"}),
        ("state=NODE_FAIL", {"theirs"}),
        ("actor=agent&harness=codex", {"theirs"}),
        ("campaign=sweep+1", {"slow"}),
        ("qos=trial", {"waits"}),
        ("user=outsider", {"theirs"}),
        ("lab=okafor&by=end", {"quick", "slow"}),
        ("state=nonsense", {"quick", "slow", "waits", "theirs"}),
    ],
)
def test_filters_mean_what_figures_say(cast: Cast, jobs: dict[str, Job], query: str, names: set[str]) -> None:
    client = sign_in(cast.staff)
    assert ids(client, query) == {jobs[name].raw_id for name in names}
    shown = client.get(f"/jobs/?{query}").context["rows"]
    assert {row.job.raw_id for row in shown} == {jobs[name].raw_id for name in names}


def test_days_are_whole_utc_days_of_submission(cast: Cast, jobs: dict[str, Job]) -> None:
    day = jobs["slow"].submit.date()
    client = sign_in(cast.staff)
    assert ids(client, f"from={day}&to={day}") == {jobs["slow"].raw_id}
    assert jobs["slow"].raw_id not in ids(client, f"from={day + timedelta(days=1)}")


def test_ended_states_and_run_times_count_on_the_day_of_the_end(cast: Cast) -> None:
    user = factories.make_cluster_user(cast.cluster, cast.pi)
    job = make_job(user, cast.lab, state="TIMEOUT", ago_s=5 * 86_400)
    Job.objects.filter(pk=job.pk).update(end=F("submit") + 2 * 86_400, usage_end=F("submit") + 2 * 86_400)
    job.refresh_from_db()
    client = sign_in(cast.staff)
    for words in ("state=TIMEOUT", "max_elapsed_s=600"):
        assert ids(client, f"{words}&from={job.end.date()}") == {job.raw_id}
        assert ids(client, f"{words}&by=submit&from={job.end.date()}") == set()
    assert ids(client, f"from={job.end.date()}") == set()


def test_the_list_is_ones_own_or_ones_labs(cast: Cast, jobs: dict[str, Job]) -> None:
    assert ids(sign_in(cast.manager), "") == {jobs[name].raw_id for name in ("quick", "slow", "waits")}
    assert ids(sign_in(cast.outsider), "") == {jobs["theirs"].raw_id}
    assert ids(sign_in(cast.colleague), "lab=okafor") == set()


def test_totals_add_up_what_is_listed(cast: Cast, jobs: dict[str, Job]) -> None:
    totals = sign_in(cast.staff).get("/jobs/?lab=okafor").context["totals"]
    assert (totals.records, totals.tasks) == (3, 12)
    assert totals.core_hours == pytest.approx((90 * 40 + 4 * 4000) / 3600)
    assert totals.gpu_hours == pytest.approx(80 / 3600)


def test_more_than_can_be_counted_is_said_and_answered_from_the_rollups(
    cast: Cast, jobs: dict[str, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    from telemetry import services
    from tests.telemetry.job_rows import mark

    for job in jobs.values():
        mark(job)
    services.catch_up(cluster=cast.cluster)
    monkeypatch.setattr(job_lists, "MOST_COUNTED", 2)
    response = sign_in(cast.staff).get("/jobs/?sort=core")
    totals = response.context["totals"]
    assert (totals.records, totals.exact, totals.within_days) == (2, False, True)
    assert totals.tasks == 13
    page = response.content.decode()
    assert "More than 2 jobs" in page and "Sorted by time of submission" in page
    assert sign_in(cast.staff).get("/jobs/?campaign=sweep+1").context["totals"].exact
    many = sign_in(cast.staff).get("/jobs/?max_elapsed_s=99999")
    assert many.context["totals"].core_hours is None or many.context["totals"].exact


@pytest.mark.parametrize("query", ["from=yesterday", "max_elapsed_s=-1", "to=2026-13-01"])
def test_what_means_nothing_is_refused(cast: Cast, query: str) -> None:
    assert sign_in(cast.staff).get(f"/jobs/?{query}").status_code == 422


def test_a_job_shows_outcome_times_and_evidence(cast: Cast) -> None:
    user = factories.make_cluster_user(cast.cluster, cast.colleague)
    session = AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=user, host="login2", harness="claude-code", started=1, agent=cast.agent
    )
    job = make_job(
        user, cast.lab, state="FAILED", exit_code=137, actor="agent", harness="claude-code", session=session,
        actor_method="declared_session", actor_confidence=0.95, submit_line="sbatch --export=K=[REDACTED:api_key] a.sh",
    )  # fmt: skip
    page = sign_in(cast.pi).get(f"/jobs/{job.pk}/").content.decode()
    assert "Failed, exit code 137 (a process ended by SIGKILL)" in page
    assert "One agent session of this login covers its submission." in page and "0.95" in page and "login2" in page
    assert '<span class="mask">[REDACTED:api_key]</span>' in page
    assert page.index("Submitted") < len(page) and "after 1" in page


def test_a_session_that_is_not_the_viewers_is_not_shown(cast: Cast) -> None:
    stranger = factories.make_cluster_user(cast.cluster, cast.outsider)
    session = AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=stranger, host="secret-host", harness="codex", started=1
    )
    user = factories.make_cluster_user(cast.cluster, cast.pi)
    job = make_job(user, cast.lab, state="RUNNING", actor="agent", session=session)
    page = sign_in(cast.pi).get(f"/jobs/{job.pk}/").content.decode()
    assert "secret-host" not in page and "one that you may not see" in page


def test_a_raw_id_leads_to_the_newest_record_one_may_see(cast: Cast) -> None:
    user = factories.make_cluster_user(cast.cluster, cast.pi)
    make_job(user, cast.lab, raw_id=77, ago_s=9000)
    newest = make_job(user, cast.lab, raw_id=77, ago_s=100)
    response = sign_in(cast.pi).get("/jobs/aster/77/")
    assert response.url == f"/jobs/{newest.pk}/"
    assert "Other records of this number" in sign_in(cast.pi).get(response.url).content.decode()
    assert sign_in(cast.outsider).get("/jobs/aster/77/").status_code == 404
    assert sign_in(cast.outsider).get(f"/jobs/{newest.pk}/").status_code == 404


def test_search_finds_what_one_may_see(cast: Cast) -> None:
    user = factories.make_cluster_user(cast.cluster, cast.pi)
    job = make_job(user, cast.lab, raw_id=4711, state="RUNNING")
    task = make_job(user, cast.lab, raw_id=4712, job_id="4711_3", array_job_id=4711)
    Job.objects.filter(pk=task.pk).update(submit=job.submit)
    pi, outsider = sign_in(cast.pi), sign_in(cast.outsider)
    assert [row.job.pk for row in pi.get("/search/?q=4711").context["jobs"]] == [job.pk]
    assert [row.job.pk for row in pi.get("/search/?q=4711_3").context["jobs"]] == [task.pk]
    assert outsider.get("/search/?q=4711").context["jobs"] == []
    assert [agent.name for agent in pi.get("/search/?q=dock").context["agents"]] == ["okafor-docking"]
    assert "Nothing found that you may see" in outsider.get("/search/?q=okafor").content.decode()
    assert [lab.name for lab in pi.get("/search/?q=okafor").context["labs"]] == ["okafor"]


@pytest.mark.parametrize("words", ["", "%", "9" * 200, "4711_", "_", "\0", "<script>alert(1)</script>"])
def test_search_takes_any_words(cast: Cast, words: str) -> None:
    response = sign_in(cast.staff).get("/search/", {"q": words})
    assert response.status_code == 200 and "<script>alert" not in response.content.decode()


@pytest.mark.parametrize(
    ("role", "url"), [("pi", "/my-lab/"), ("colleague", "/my-lab/"), ("staff", ""), ("infosec", ""), ("auditor", "")]
)
def test_home_is_where_the_day_begins(cast: Cast, role: str, url: str) -> None:
    from portal.dashboard import shell

    response = sign_in(getattr(cast, role)).get("/")
    assert response.url == (url or shell.url_or_none("overview") or "/jobs/live/")


def test_the_frame_says_how_old_the_data_is_and_that_it_is_invented(cast: Cast) -> None:
    from django.core.cache import cache

    from portal.core import clock
    from principals.models import Cluster
    from telemetry.models import IngestSource

    client = sign_in(cast.staff)
    assert "Demo data" not in client.get("/search/").content.decode()
    Cluster.objects.update(is_demo=True)
    cache.clear()
    source = IngestSource.objects.create(
        cluster=cast.cluster, name="reader", kind="jobs", expected_every_s=5, last_received=clock.now()
    )
    page = client.get("/search/").content.decode()
    assert "the one source is current" in page and "Demo data" in page
    nightly = IngestSource.objects.create(
        cluster=cast.cluster, name="nightly", kind="jobs", last_received=clock.now() - timedelta(hours=9)
    )
    assert "all sources current" in client.get("/search/").content.decode()
    nightly.delete()
    IngestSource.objects.filter(pk=source.pk).update(last_received=clock.now() - timedelta(seconds=40))
    assert "Reader late, last heard 40" in client.get("/search/").content.decode()


def test_selectors_never_look_past_the_cluster(cast: Cast) -> None:
    assert selectors.newest_by_raw_id(factories.actor_of(cast.staff), "aster", 2**80) is None
    assert selectors.find_by_id(factories.actor_of(cast.staff), "1" * 19) == []


@pytest.fixture
def lent(cast: Cast) -> Job:
    """A job that the colleague's agent of another lab made on the lab's account."""
    cast.other_lab.memberships.create(user=cast.colleague)
    login = factories.make_cluster_user(cast.cluster, cast.colleague)
    session = AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=login, host="login01", harness="codex", started=0,
        agent=factories.make_agent(cast.other_lab, cast.colleague, "marlowe-secret"),
    )  # fmt: skip
    return make_job(login, cast.lab, actor="agent", harness="codex", session=session, agent=session.agent)


@pytest.mark.parametrize(("who", "sees"), [("pi", False), ("colleague", True), ("staff", True), ("auditor", True)])
def test_an_agent_of_another_lab_is_named_to_nobody_who_may_not_see_it(
    cast: Cast, lent: Job, who: str, sees: bool
) -> None:
    client = sign_in(getattr(cast, who))
    pages = ["/jobs/", "/jobs/live/", f"/jobs/{lent.pk}/", f"/search/?q={lent.raw_id}"]
    texts = [client.get(path).content.decode() for path in pages]
    texts += [b"".join(client.get(f"{path}?format=csv").streaming_content).decode() for path in pages[:2]]
    assert all(str(lent.raw_id) in text for text in texts)
    assert {"marlowe-secret" in text for text in texts} == {sees}
    assert ids(client, "agent=marlowe-secret") == ({lent.raw_id} if sees else set())


@pytest.mark.parametrize("name", ["wait", "max_elapsed_s"])
@pytest.mark.parametrize("text", ["-1", "1e3", "²", "9" * 12, "0" * 12 + "9" * 20, "0" * 12 + "9" * 5000])
def test_a_number_that_no_column_holds_is_refused(cast: Cast, name: str, text: str) -> None:
    assert sign_in(cast.staff).get("/jobs/", {name: text}).status_code == 422


def test_a_job_shows_what_its_gpus_did_and_what_would_have_done(cast: Cast) -> None:
    user = cast.colleague.cluster_users.get()
    job = gpu_job(user, cast.lab, 77)
    page = f"/jobs/{job.pk}/"
    assert "GPUs used" not in sign_in(cast.colleague).get(page).content.decode()
    services.record_gpu_utilisation(actor=SYSTEM_ACTOR, cluster=cast.cluster, readings=[reading(77, 12, 8)])
    html = sign_in(cast.colleague).get(page).content.decode()
    assert "of compute" in html and "A MIG slice would have done: 1g.10gb" in html
