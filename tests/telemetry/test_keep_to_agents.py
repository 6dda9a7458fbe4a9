"""Nothing of people without agents is kept in default mode: looked for in every column of every table."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps

from portal.core import clock
from principals.actors import SYSTEM_ACTOR
from principals.models import ClusterUser
from telemetry import services
from telemetry.engine.slurm import printing
from telemetry.engine.slurm.queue_texts import Texts
from telemetry.models import HookReport, QueueSheet, SlurmReader
from telemetry.services.activity.silence import end_silent_sessions
from telemetry.services.reader.sheets import Sheets
from tests import factories
from tests.conftest import Api, Cast
from tests.telemetry.activity_batches import AGENT, SHELL, agent_session, batch, counted, minute, post, shell_session
from tests.telemetry.logs import ingest, iso, job_row, live_row, text

pytestmark = [pytest.mark.django_db, pytest.mark.sql, pytest.mark.usefixtures("standing_clock")]
BYSTANDER = "bystander"
KEYS = ("cluster_user_id", "user_id", "user_key")


def everything() -> list[tuple[str, dict[str, Any]]]:
    """Every row of every table of ours, with its table."""
    return [
        (model._meta.label, row)
        for model in apps.get_models(include_auto_created=True)
        for row in model._base_manager.values()
    ]


def rows_about(login: str, *, users: set[int]) -> list[str]:
    """The tables with a row that holds a login name anywhere, or is keyed to one of its ids."""
    named = re.compile(rf"\b{login}\b")

    def is_about(row: dict[str, Any]) -> bool:
        keyed = any(row.get(name) in users for name in KEYS)
        return keyed or any(
            named.search(bytes(value).decode(errors="replace") if isinstance(value, bytes | memoryview) else str(value))
            for value in row.values()
        )

    return [label for label, row in everything() if is_about(row)]


def hostile() -> dict[str, Any]:
    """What a collector that was set up wrongly, or taken over, could send of a person's shell."""
    other = "701-4711"
    return batch(
        study="invented",
        sessions=[agent_session(), shell_session(), shell_session(id=other, harness="claude-code")],
        minutes=[
            counted(), counted(SHELL, "human"), counted(SHELL, "agent"), counted(AGENT, "human"),
            counted(SHELL, "unknown"), counted(other, "human"), counted("", "human"), counted("", "unknown"),
        ],
        submissions=[{"session": name, "at": minute(9)} for name in (AGENT, SHELL, other)],
        polling=[{"session": name, "first": minute(9), "last": minute(8), "queries": 5, "period_s": 6}
                 for name in (AGENT, SHELL, other)],
        loops=[{"session": name, "submitted": minute(9), "again": minute(8)} for name in (AGENT, SHELL, other)],
        ssh=[{"day": str(minute(9).date()), "connections": 9, "untold": 1, "keys": 1, "clients": 1, "pairs": 1}],
    )  # fmt: skip


def test_in_default_mode_no_row_of_any_table_is_about_a_person_without_agents(cast: Cast, service_api: Api):
    answer = post(service_api, hostile())
    assert answer.status_code == 200
    taken = {"sessions": 1, "minutes": 3, "submissions": 1, "polling": 1, "loops": 1, "ssh": 1}
    assert answer.json()["accepted"] == taken
    assert BYSTANDER not in answer.content.decode()
    services.refresh_activity()
    end_silent_sessions()
    assert rows_about(BYSTANDER, users=set()) == []
    assert len(rows_about("colleague", users=set())) > 1, "the search itself finds what is there"


def test_nor_where_slurm_already_knows_them_as_an_account_holder(cast: Cast, service_api: Api):
    """Their jobs are what the site keeps anyway; what they do on login nodes adds nothing to it."""
    ingest(cast.cluster, text(job_row(1, User=BYSTANDER, Submit=iso(600))))
    user = ClusterUser.objects.get(login=BYSTANDER).pk

    def about() -> list[str]:
        return sorted(rows_about(BYSTANDER, users={user}))

    services.catch_up(cluster=cast.cluster)
    before = about()
    assert "telemetry.Job" in before
    assert post(service_api, hostile()).status_code == 200
    services.refresh_activity()
    services.catch_up(cluster=cast.cluster)
    assert about() == before


def test_nor_what_hooks_and_squeue_tell_of_their_jobs(cast: Cast):
    """A hook's row is of a job's number; what squeue prints is kept of those alone for whom agents work."""
    ingest(cast.cluster, text(live_row(1, "RUNNING", User=BYSTANDER)))
    user = ClusterUser.objects.get(login=BYSTANDER).pk
    before = sorted(rows_about(BYSTANDER, users={user}))
    SlurmReader.objects.create(cluster=cast.cluster)
    said = {"SLURM_JOB_ID": "1", "SLURM_JOB_MAIL_TYPE": "Ended", "SLURM_JOB_USER": BYSTANDER}
    services.record_hook_events(
        actor=SYSTEM_ACTOR, cluster=cast.cluster, events=[services.HookEvent("mail", clock.now().timestamp(), said)]
    )
    printed = [{"jobid": "1", "username": name, "state": "RUNNING"} for name in (BYSTANDER, "colleague")]
    rows = [[each.get(key, "") for key in printing.KEYS] for each in printed]
    Sheets(cast.cluster, knows=lambda login: True).keep(Texts(rows, clock.now_s(), clock.now_s()))
    assert HookReport.objects.count() == 1 and QueueSheet.objects.filter(cluster_user__login="colleague").exists()
    assert sorted(rows_about(BYSTANDER, users={user})) == before


def test_in_a_study_their_rows_are_there_and_under_its_name(cast: Cast, service_api: Api):
    services.start_study(
        actor=factories.actor_of(cast.staff), cluster=cast.cluster, name="invented", purpose="p", approved_by="board",
        starts=clock.now() - timedelta(hours=2), until=clock.now() + timedelta(days=1),
    )  # fmt: skip
    post(service_api, hostile())
    services.refresh_activity()
    user = ClusterUser.objects.get(login=BYSTANDER).pk
    assert "telemetry.ActivityDay" in rows_about(BYSTANDER, users={user})
