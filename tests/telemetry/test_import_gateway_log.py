"""`manage.py import_gateway_log`: who works through a gateway by agents, and what is never kept of anybody."""

import gzip
import io
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command

from portal.core import clock
from portal.core.models import AuditEvent
from principals.models import AgentSession, ClusterUser
from telemetry import services
from telemetry.engine.gateways import SET_ASIDE
from telemetry.models import ActivitySubmission, GatewayDay, GatewayMinute, IngestBatch, IngestSource, Job
from tests import factories
from tests.conftest import Cast
from tests.telemetry.logs import ingest, job_row, text

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
NOW = datetime(2026, 7, 10, 12, tzinfo=UTC)
NINE = datetime(2026, 7, 7, 9, tzinfo=UTC)
APPS = "/pun/sys/dashboard/batch_connect/sys/bc_jupyter/session_contexts"
CLAUDE, FIREFOX = "claude-cli/2.1.7 (external, cli)", "Mozilla/5.0 (X11) Gecko/20100101 Firefox/140.0"
SECRET = "s3cr3t-query"


@pytest.fixture(autouse=True)
def now() -> Any:
    with clock.at(NOW):
        yield


def line(minutes: float, user: str = "colleague", request: str = f"GET /pun/sys/dashboard?token={SECRET}",
         agent: str = CLAUDE, status: int = 200) -> str:  # fmt: skip
    at = (NINE + timedelta(minutes=minutes)).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'192.0.2.77 - {user} [{at}] "{request} HTTP/1.1" {status} 9 "https://ood.example/" "{agent}"\n'


def run(tmp_path: Path, lines: Sequence[str], name: str = "access.log", **options: str) -> str:
    path = tmp_path / name
    path.write_bytes(gzip.compress("".join(lines).encode()) if name.endswith(".gz") else "".join(lines).encode())
    return call(str(path), **options)


def call(*names: str, **options: str) -> str:
    out = io.StringIO()
    told = {"kind": "ondemand", "cluster": "aster", "host": "ood", "zone": "UTC"} | options
    call_command("import_gateway_log", *names, stdout=out, stderr=io.StringIO(), **told)
    return out.getvalue()


def facts() -> list[Any]:
    """Everything that is known of gateways, without the ids of rows."""
    sessions = AgentSession.objects.values_list(
        "cluster_user__login", "host", "place", "harness", "started", "ended", "process"
    )
    submissions = ActivitySubmission.objects.values_list("session__started", "at", "number")
    minutes = GatewayMinute.objects.values_list("driver", "cluster_user__login", "harness", "minute", "seconds")
    names = ("driver", "cluster_user__login", "harness", "day", "requests", "submissions", "transfers")
    return [
        sorted(map(repr, rows)) for rows in (sessions, submissions, minutes, GatewayDay.objects.values_list(*names))
    ]


def test_an_agents_requests_become_its_sessions_with_what_they_did(cast: Cast, tmp_path: Path):
    said = run(tmp_path, [
        line(0), line(10, request=f"POST {APPS}", status=302), line(39.5), line(70),  # the last: half an hour and more
        line(12, request="PUT /pun/sys/dashboard/files/fs/home/colleague/job.sh"),
        line(1, user="outsider", agent=FIREFOX), line(2, user="outsider", agent="curl/8.5"),
        line(3, agent="mcp-remote/1"),
    ])  # fmt: skip
    assert "8 requests of somebody: agents’ 6, people’s 1, nobody knows whose 1" in said and "2 new sessions" in said
    first, second = AgentSession.objects.order_by("started")
    assert (first.started, first.ended) == (NINE, NINE + timedelta(minutes=39.5))
    assert (first.cluster_user.login, first.host, first.harness, first.place) == (
        "colleague", "ood", "claude-code", "gateway"
    )  # fmt: skip
    assert first.agent == cast.agent and second.started == NINE + timedelta(minutes=70)
    days = {(row.driver, row.cluster_user_id): row for row in GatewayDay.objects.all()}
    own = days["agent", first.cluster_user_id]
    assert (own.requests, own.submissions, own.transfers, own.harness) == (5, 1, 1, "claude-code")
    assert {key: row.requests for key, row in days.items() if key[1] is None} == {
        ("agent", None): 1, ("human", None): 1, ("unknown", None): 1
    }  # fmt: skip
    assert AuditEvent.objects.filter(verb="ingest.gateway_log").get().payload["after"]["requests"]["agent"] == 6
    assert IngestSource.objects.get(kind="gateway").name == "ood"


def test_the_job_that_a_request_submitted_is_the_agents(cast: Cast, tmp_path: Path):
    at = NINE + timedelta(minutes=10, seconds=2)
    ingest(cast.cluster, text(job_row(7, User="colleague", Submit=at.strftime("%Y-%m-%dT%H:%M:%S"))))
    said = run(tmp_path, [line(0), line(10, request=f"POST {APPS}", status=302), line(15)])
    assert "attributions of jobs changed 2" in said  # to the session, and then by the submission that was seen
    job = Job.objects.get()
    assert (job.actor, job.harness, job.actor_method) == ("agent", "claude-code", "observed")
    assert job.session is not None and job.session.place == "gateway"


def test_overlapping_logs_in_any_order_say_what_the_whole_one_says(cast: Cast, tmp_path: Path):
    rng = Random(7)
    lines = sorted(
        (minute := rng.uniform(0, 2000), line(
            minute, rng.choice(("colleague", "pi")), f"POST {APPS}" if rng.random() < 0.2 else "GET /pun",
            rng.choice((CLAUDE, FIREFOX, "codex_cli_rs/0.5")),
        )) for _ in range(400)
    )  # fmt: skip
    texts = [each for _, each in lines]
    run(tmp_path, texts)
    whole = facts()
    assert len(whole[0]) > 10
    for model in (AgentSession, GatewayMinute, GatewayDay):
        model.objects.all().delete()
    # Cut between seconds, as rotation does but for the rarest chance; each part overlaps with its neighbours.
    parts = [texts[max(0, at - rng.randrange(40)) : at + 40] for at in range(0, 400, 40)]
    rng.shuffle(parts)
    for number, part in enumerate(parts):
        run(tmp_path, part, f"access.log-{number}.gz")
    assert facts() == whole
    said = run(tmp_path, texts)
    assert "new 0, known already 400" in said and "0 new sessions" in said and facts() == whole


def test_a_log_that_comes_late_lets_a_session_begin_earlier_and_joins_two(cast: Cast, tmp_path: Path):
    run(tmp_path, [line(0), line(50, request=f"POST {APPS}")])
    assert AgentSession.objects.count() == 2
    old = AgentSession.objects.order_by("started").first()
    run(tmp_path, [line(25), line(-20)])
    row = AgentSession.objects.get()
    assert row == old and (row.started, row.ended) == (NINE - timedelta(minutes=20), NINE + timedelta(minutes=50))
    assert ActivitySubmission.objects.get().session == row


def test_nothing_of_people_of_addresses_paths_or_queries_is_kept(cast: Cast, tmp_path: Path):
    run(tmp_path, [
        line(0), line(1, "bystander", agent=FIREFOX), line(2, "bystander", agent="python-requests/2"),
        line(3, "bystander", agent="mcp-remote/1"), f"bystander {SECRET} is no line of a log\n",
    ])  # fmt: skip
    wanted = re.compile(rf"bystander|{SECRET}|192\.0\.2\.77|dashboard|ood\.example|Firefox|requests/2")
    tables = [model for model in apps.get_models(include_auto_created=True) if model._meta.app_label != "sessions"]
    found = [
        (model._meta.label, row) for model in tables for row in model._base_manager.values()
        if any(wanted.search(str(value)) for value in row.values())
    ]  # fmt: skip
    assert found == []
    assert not ClusterUser.objects.filter(login="bystander").exists()


def test_a_line_that_cannot_be_taken_is_counted_with_its_reason_and_not_kept(cast: Cast, tmp_path: Path):
    said = run(tmp_path, [
        line(0), "junk\n", line(-60 * 24 * 40), line(60 * 24 * 30), line(1, "ada@other.edu"), line(2, "-"),
        line(3, "colleague@site.edu"), line(4, "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"),
    ], realm="site.edu")  # fmt: skip
    assert "set aside for: form 1, future_date 1, other_realm 1, too_old 1, user_invalid 1" in said
    assert "no requests: no_user 1" in said
    batch = IngestBatch.objects.get()
    assert (batch.created_rows, batch.rejected_rows, batch.state) == (2, 5, "done")
    said_of = {(row.raw, row.detail) for row in batch.quarantined.all()}
    reasons = ("form", "future_date", "other_realm", "too_old", "user_invalid")
    assert said_of == {("", SET_ASIDE[reason]) for reason in reasons}
    assert sorted(batch.quarantined.values_list("line", flat=True)) == [2, 3, 4, 5, 8]


def test_the_systems_of_firecrest_are_told_apart(cast: Cast, tmp_path: Path):
    def traced(system: str, second: int) -> str:
        return (
            f'{{"asctime": "2026-07-07 11:00:{second:02},598", "name": "f7t_v2_tracing_log", "username": "colleague", '
            f'"system_name": "{system}", "endpoint": "/compute/{system}/jobs", "status_code": 201, '
            f'"user_agent": "{CLAUDE}"}}\n'
        )

    said = run(
        tmp_path, [traced("aster", 1), traced("borage", 2)], kind="firecrest", system="aster", zone="Europe/Zurich"
    )
    assert "new 1," in said and "other_system 1" in said
    assert ActivitySubmission.objects.get().at == datetime(2026, 7, 7, 9, 0, 1, tzinfo=UTC)


def test_standard_input_is_read_too(cast: Cast, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((line(0) + line(1)).encode())))
    assert "standard input: 2 requests" in call("-")


def test_what_makes_no_sense_is_refused_in_a_sentence(cast: Cast, tmp_path: Path):
    with pytest.raises(CommandError, match="no time zone"):
        run(tmp_path, [line(0)], zone="Mars/Base")
    with pytest.raises(CommandError, match="No gateway has that name"):
        run(tmp_path, [line(0)], host="not a host")
    with pytest.raises(CommandError, match="cannot be read"):
        call(str(tmp_path / "missing.log"))
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(line(0).encode())[:-9])
    with pytest.raises(CommandError, match="no whole gzip file"):
        call(str(broken))
    assert not AgentSession.objects.exists()


def test_an_end_of_their_keeping_is_theirs_too(cast: Cast, tmp_path: Path):
    run(tmp_path, [line(0)])
    with clock.at(NOW + timedelta(days=40)):
        assert services.prune()["gateway_minutes"] == 1
    with clock.at(NOW + timedelta(days=420)):
        assert services.prune()["sessions"] == 1
    assert GatewayDay.objects.count() == 1
    with clock.at(NOW + timedelta(days=3 * 366)):
        assert services.prune()["gateway_days"] == 1


def test_staff_see_all_days_and_a_person_their_own(cast: Cast, tmp_path: Path):
    run(tmp_path, [line(0), line(1, agent=FIREFOX)])
    assert GatewayDay.objects.visible_to(factories.actor_of(cast.staff)).count() == 2
    assert GatewayDay.objects.visible_to(factories.actor_of(cast.colleague)).count() == 1
    assert GatewayDay.objects.visible_to(factories.actor_of(cast.outsider)).count() == 0
