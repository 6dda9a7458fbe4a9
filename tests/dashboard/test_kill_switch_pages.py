"""The pages of the kill switch: its reach comes first, then the decision."""

import pytest

from portal.core import clock
from principals.models import Agent, KillSwitch
from telemetry.models import Job
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.job_rows import make_job
from tests.telemetry.logs import ingest, live_row, text

pytestmark = pytest.mark.django_db
URL = "/kill-switch/"


def test_its_reach_is_shown_before_anybody_is_stopped(cast: Cast) -> None:
    ingest(cast.cluster, text(live_row(2, "PENDING", JobID="2_[3-9]", User="colleague", Account="okafor_lab")))
    Job.objects.update(agent=cast.agent)  # by a receipt: it is of no session
    page = sign_in(cast.staff).get(URL, {"kind": "lab", "which": cast.lab.name})
    assert (page.context["preview"]["reach"].agents, page.context["preview"]["running"]) == (1, 7)
    assert cast.agent.name in page.content.decode()
    assert not KillSwitch.objects.exists()


def test_running_jobs_are_counted_by_whichever_way_they_are_an_agents(cast: Cast) -> None:
    """A receipt names an agent without a session; what an old file called running runs no more."""
    user, now = factories.make_cluster_user(factories.make_cluster(), cast.agent.owner), int(clock.now().timestamp())
    for began, tasks in ((now - 60, 3), (now - 30 * 86_400, 1)):
        make_job(
            user, cast.lab, submit=began, start=began, state="RUNNING", usage_end=began + 30, timelimit_s=3600,
            agent=cast.agent, array_tasks=tasks,
        )  # fmt: skip
    page = sign_in(cast.staff).get(URL, {"kind": "agent", "which": cast.agent.name})
    assert page.context["preview"]["running"] == 3


def test_it_is_pulled_and_ended(cast: Cast) -> None:
    client = sign_in(cast.staff)
    answer = client.post(f"{URL}?kind=agent&which={cast.agent.name}", {"reason": "Loops.", "hours": "8"})
    switch = KillSwitch.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, switch.get_absolute_url())
    assert "Loops." in client.get(f"/agents/{cast.agent.name}/").content.decode()
    assert "In force" in client.get(switch.get_absolute_url()).content.decode()
    assert client.post(f"{switch.get_absolute_url()}end/", {"reason": ""}).status_code == 422
    client.post(f"{switch.get_absolute_url()}end/", {"reason": "Mended."})
    assert "Mended." in client.get(switch.get_absolute_url()).content.decode()


def test_two_people_stop_many(cast: Cast, settings) -> None:
    settings.KILL_SWITCH_ALONE = 0
    asked = sign_in(cast.staff)
    assert "This takes two people" in asked.get(URL, {"kind": "all"}).content.decode()
    asked.post(f"{URL}?kind=all", {"reason": "A leak.", "hours": "24"})
    switch = KillSwitch.objects.get()
    assert asked.post(f"{switch.get_absolute_url()}agree/").status_code == 403
    other = sign_in(cast.infosec)
    assert 'Kill switch <span class="count count--due">1' in other.get(URL).content.decode()
    assert other.post(f"{switch.get_absolute_url()}agree/").status_code == 302
    switch.refresh_from_db()
    assert (switch.state, switch.decided_by) == ("in_force", cast.infosec)


def test_a_fault_of_the_form_stays_on_the_page(cast: Cast) -> None:
    client = sign_in(cast.staff)
    nowhere = client.get(URL, {"kind": "lab", "which": "<b>nowhere</b>"})
    assert nowhere.status_code == 200 and nowhere.context["target"] is None
    assert "<b>nowhere" not in nowhere.content.decode()
    unnamed = client.get(URL, {"kind": "lab", "which": ""})
    assert unnamed.context["target"] is None and "nothing of that name" in unnamed.content.decode()
    answer = client.post(f"{URL}?kind=agent&which={cast.agent.name}", {"reason": "", "hours": "8"})
    assert answer.status_code == 422
    assert not KillSwitch.objects.exists()


def test_an_auditor_reads_and_pulls_nothing(cast: Cast) -> None:
    client = sign_in(cast.auditor)
    page = client.get(URL, {"kind": "all"})
    assert page.status_code == 200 and "Show whom it reaches" not in page.content.decode()
    assert client.post(f"{URL}?kind=all", {"reason": "x", "hours": "1"}).status_code == 403


@pytest.mark.parametrize("agents", [1, 30])
def test_its_queries_do_not_grow(cast: Cast, agents: int, django_assert_max_num_queries) -> None:
    Agent.objects.filter(pk=cast.agent.pk).update(harness="codex")
    for number in range(agents):
        factories.make_agent(cast.lab, cast.manager, f"okafor-{number}", harness="codex")
    client = sign_in(cast.staff)
    client.post(f"{URL}?kind=harness&which=codex", {"reason": "x", "hours": "1"})
    with django_assert_max_num_queries(28):
        client.get(URL, {"kind": "harness", "which": "codex"})
