"""Receipts meet their jobs, and those that no job came for expire."""

from datetime import UTC, datetime, timedelta
from typing import Any

from policies import selectors
from policies import services as policy_services
from policies.models import TrialGrant, TrialRefusal
from portal.core import clock
from portal.core.models import AuditEvent, LiveEvent
from telemetry.models import Job
from tests import factories
from tests.conftest import Cast
from tests.policies import worlds
from tests.telemetry.logs import ingest, job_row, text


def test_a_job_in_the_trial_qos_uses_the_receipt(cast: Cast) -> None:
    trial = worlds.make_trial(cast)
    now = clock.now()
    job = worlds.make_job(cast.cluster, cast.colleague, cast.lab, submit=now, start=now + timedelta(seconds=90))
    settled = policy_services.settle_trials()
    trial.refresh_from_db()
    assert (settled.used, trial.state, trial.job) == (1, "used", job)
    assert LiveEvent.objects.get(name="trial.used").payload["trial"] == trial.public_id
    assert selectors.trial_day(factories.actor_of(cast.staff)).start_after_s == 90


def test_settling_twice_changes_nothing(cast: Cast) -> None:
    worlds.make_trial(cast)
    worlds.make_job(cast.cluster, cast.colleague, cast.lab, submit=clock.now())
    policy_services.settle_trials()
    again = policy_services.settle_trials()
    assert (again.used, again.expired) == (0, 0)
    assert AuditEvent.objects.filter(verb="trial.settle").count() == 1


def test_two_receipts_and_two_jobs_are_paired_oldest_first(cast: Cast) -> None:
    now = clock.now()
    first = worlds.make_trial(cast, granted_at=now - timedelta(minutes=10))
    second = worlds.make_trial(cast, granted_at=now - timedelta(minutes=5))
    jobs = [
        worlds.make_job(cast.cluster, cast.colleague, cast.lab, submit=now - timedelta(minutes=minutes))
        for minutes in (4, 2)
    ]
    policy_services.settle_trials()
    first.refresh_from_db()
    second.refresh_from_db()
    assert [first.job, second.job] == jobs


def test_other_jobs_use_no_receipt(cast: Cast) -> None:
    trial = worlds.make_trial(cast)
    now = clock.now()
    worlds.make_job(cast.cluster, cast.colleague, cast.lab, submit=now, qos="normal")
    worlds.make_job(cast.cluster, cast.pi, cast.lab, submit=now)
    worlds.make_job(cast.cluster, cast.colleague, cast.lab, submit=now - timedelta(hours=1))
    worlds.make_job(cast.cluster, cast.colleague, cast.lab, submit=now + timedelta(hours=2))
    assert policy_services.settle_trials().used == 0
    trial.refresh_from_db()
    assert trial.state == "granted"


def named(cast: Cast, receipt: str, who: str = "colleague", **fields: Any) -> Job:
    """A job whose comment names a receipt, among other things."""
    fields = {"submit": clock.now(), "qos": "normal"} | fields
    user = getattr(cast, who)
    return worlds.make_job(
        cast.cluster, user, cast.lab, extra={"Comment": f"campaign=dock {receipt}"}, **fields
    )  # fmt: skip


def test_a_job_that_names_a_receipt_uses_that_one(cast: Cast) -> None:
    now = clock.now()
    older = worlds.make_trial(cast, granted_at=now - timedelta(minutes=5))
    trial = worlds.make_trial(cast)
    without_qos = worlds.make_trial(cast, qos="")
    job, other = named(cast, trial.public_id, qos="trial"), named(cast, without_qos.public_id)
    assert policy_services.settle_trials().used == 2
    for each in (older, trial, without_qos):
        each.refresh_from_db()
    assert (older.state, trial.job, without_qos.job) == ("granted", job, other)


def test_a_receipt_is_for_one_job(cast: Cast) -> None:
    first, second = worlds.make_trial(cast), worlds.make_trial(cast)
    job = named(cast, first.public_id, qos="trial")
    named(cast, first.public_id, qos="trial")
    assert policy_services.settle_trials().used == 1
    assert policy_services.settle_trials().used == 0
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.job, second.state) == (job, "granted")


def test_a_receipt_of_somebody_else_is_used_by_nobody(cast: Cast) -> None:
    trial, own = worlds.make_trial(cast), worlds.make_trial(cast, user=cast.pi)
    named(cast, trial.public_id, "pi", qos="trial")
    named(cast, f"{own.public_id} {trial.public_id}", "pi", qos="trial")
    named(cast, trial.public_id, submit=clock.now() + timedelta(hours=2))
    named(cast, trial.public_id[:-1], submit=clock.now())
    named(cast, f"x{trial.public_id}", submit=clock.now())
    assert policy_services.settle_trials().used == 0
    assert not TrialGrant.objects.exclude(state="granted").exists()


def test_a_receipt_is_found_in_the_comment_that_accounting_tells(cast: Cast) -> None:
    factories.make_cluster_user(cast.cluster, cast.colleague)
    trial = worlds.make_trial(cast, granted_at=datetime(2026, 7, 1, 9, 30, tzinfo=UTC))
    row = job_row(1, User="colleague", Account="okafor_lab", Comment=trial.public_id, Submit="2026-07-01T10:00:00")
    with clock.at(datetime(2026, 7, 1, 12, tzinfo=UTC)):
        ingest(cast.cluster, text(row))
        assert policy_services.settle_trials().used == 1
    trial.refresh_from_db()
    assert trial.job and trial.job.raw_id == 1


def test_a_receipt_that_a_site_script_wrote_beside_the_job_is_read_too(cast: Cast) -> None:
    trial, other = worlds.make_trial(cast, qos=""), worlds.make_trial(cast)
    job = worlds.make_job(
        cast.cluster, cast.colleague, cast.lab, submit=clock.now(), qos="normal",
        extra={"AdminComment": f"site:7 {trial.public_id}"},
    )  # fmt: skip
    worlds.make_job(  # names two, one in each comment: it is of neither
        cast.cluster, cast.colleague, cast.lab, submit=clock.now(), qos="trial",
        extra={"AdminComment": trial.public_id, "Comment": other.public_id},
    )  # fmt: skip
    assert policy_services.settle_trials().used == 1
    trial.refresh_from_db()
    other.refresh_from_db()
    assert (trial.job, other.state) == (job, "granted")


def test_a_receipt_without_a_job_expires_and_stays_charged(cast: Cast) -> None:
    trial = worlds.make_trial(cast, granted_at=clock.now() - timedelta(hours=2))
    assert policy_services.settle_trials().expired == 1
    trial.refresh_from_db()
    assert trial.state == "expired"
    assert selectors.trial_budget(cast.colleague, cast.lab).trials_used == 1


def test_a_job_that_is_told_late_still_finds_its_expired_receipt(cast: Cast) -> None:
    at = clock.now() - timedelta(hours=3)
    trial = worlds.make_trial(cast, granted_at=at)
    policy_services.settle_trials()
    worlds.make_job(cast.cluster, cast.colleague, cast.lab, submit=at + timedelta(minutes=5))
    assert policy_services.settle_trials().used == 1
    trial.refresh_from_db()
    assert trial.state == "used"


def test_a_job_after_a_cancellation_charges_the_receipt_again(cast: Cast) -> None:
    trial = worlds.make_trial(cast)
    policy_services.cancel_trial(actor=factories.actor_of(cast.colleague), trial=trial)
    worlds.make_job(cast.cluster, cast.colleague, cast.lab, submit=clock.now())
    policy_services.settle_trials()
    trial.refresh_from_db()
    assert trial.state == "used"
    assert selectors.trial_budget(cast.colleague, cast.lab).trials_used == 1


def test_refusals_are_kept_ninety_days(cast: Cast) -> None:
    for days in (89, 91):
        TrialRefusal.objects.create(
            user=cast.colleague, lab=cast.lab, cluster=cast.cluster, minutes=60, code="too_long",
            at=clock.now() - timedelta(days=days),
        )  # fmt: skip
    assert policy_services.settle_trials().pruned == 1
    assert TrialRefusal.objects.count() == 1
