"""What was refused is tried again with one call once the fault is mended; what cannot be is said; nothing is lost."""

import pytest

from portal.core.errors import Conflict, NotAllowed
from portal.core.models import AuditEvent
from principals.actors import SYSTEM_ACTOR
from principals.permissions import actor_for_user
from telemetry import services, tasks
from telemetry.engine.slurm import values
from telemetry.models import IngestBatch, IngestPayload, Job, QuarantinedRow, RollupDay
from tests.conftest import Cast, sign_in
from tests.telemetry.engine.test_read_xdmod import GOOD as XDMOD
from tests.telemetry.logs import counts, ingest, job_row, text

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    hints: list[int] = []
    monkeypatch.setattr(tasks.run_ingest_batch, "delay", hints.append)
    return hints


@pytest.fixture
def mended(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Let the state NOVEL be known from now on, as a later version would."""

    def mend() -> None:
        monkeypatch.setattr(values, "STATES", values.STATES | {"NOVEL"})
        monkeypatch.setattr(values, "ENDED_STATES", values.ENDED_STATES | {"NOVEL"})
        values.parse_state.cache_clear()

    yield mend
    values.parse_state.cache_clear()


def retry(batch: IngestBatch) -> IngestBatch:
    again = services.retry_batch(actor=SYSTEM_ACTOR, batch=batch)
    assert services.run_batch(again.pk)
    again.refresh_from_db()
    return again


NAMES = ("one", "caf\u00e9 \U0001f642", "three")
NOVEL = [job_row(number, State="NOVEL", JobName=name) for number, name in enumerate(NAMES, start=2)]


def test_rows_of_a_state_that_is_known_now_are_taken(
    cast: Cast, mended, sent: list[int], django_capture_on_commit_callbacks
) -> None:  # type: ignore[no-untyped-def]
    odd = job_row(5, State="NOVEL", JobName="a|b\nc")
    batch = ingest(cast.cluster, text(*NOVEL, job_row(1), odd, job_row(6), job_row(9, Submit="yesterday")))
    # A good row behind one that may go on over several lines is set aside with it.
    assert (counts(batch), services.can_retry(batch)) == ({"created": 1, "rejected": 5}, 5)
    mended()
    with django_capture_on_commit_callbacks(execute=True):
        again = services.retry_batch(actor=SYSTEM_ACTOR, batch=batch)
    assert sent == [again.pk] and again.sent_by == SYSTEM_ACTOR.ref.label
    assert services.run_batch(again.pk)
    again.refresh_from_db()
    assert (again.state, counts(again)) == ("done", {"created": 5, "rejected": 1})
    names = dict(Job.objects.values_list("raw_id", "job_name"))
    assert [names[number] for number in (2, 3, 4, 5, 6)] == [*NAMES, "a|b\nc", "train"]
    left = QuarantinedRow.objects.get()
    assert (left.batch, left.reason) == (again, "bad_time")
    assert services.can_retry(batch) == 0
    told = AuditEvent.objects.get(verb="ingest.retry").payload["after"]
    assert told == {"batch": str(again.public_id), "rows": 5}
    assert sum(RollupDay.objects.values_list("submissions", flat=True)) == 6


def test_what_is_refused_again_and_again_is_lost_never(cast: Cast) -> None:
    batch = ingest(cast.cluster, text(*NOVEL))
    for _ in range(3):
        batch = retry(batch)
        assert counts(batch) == {"rejected": 3}
    assert [row.batch for row in QuarantinedRow.objects.all()] == [batch] * 3


def test_rows_that_are_not_kept_as_they_were_sent_are_left_where_they_are(cast: Cast, mended) -> None:  # type: ignore[no-untyped-def]
    damaged = job_row(2, User="caf@").encode().replace(b"caf@", b"caf\xe9") + b"\n"
    body = text(
        job_row(1),
        job_row(3, State="NOVEL", SubmitLine=f"sbatch --export=TOKEN={SECRET} x"),
        job_row(4, State="NOVEL", SubmitLine="sbatch " + "x" * 3000),
        job_row(5, User="u" * 70),
    )
    batch = ingest(cast.cluster, body + damaged + b"nonsense\n" + job_row(6).encode()[:-30])
    refused = counts(batch)["rejected"]
    assert refused >= 5 and services.can_retry(batch) == 0
    mended()
    with pytest.raises(Conflict) as caught:
        services.retry_batch(actor=SYSTEM_ACTOR, batch=batch)
    assert caught.value.code == "nothing_to_retry" and "Send the file again" in caught.value.remedy
    assert QuarantinedRow.objects.filter(batch=batch).count() == refused
    assert not AuditEvent.objects.filter(verb="ingest.retry")


def test_lines_of_the_xdmod_form_are_tried_again_with_their_labs(cast: Cast, mended) -> None:  # type: ignore[no-untyped-def]
    good = XDMOD.replace("|hill|", f"|{cast.cluster.name}|")
    batch = ingest(cast.cluster, f"{good.replace('|CANCELLED by 380693|', '|NOVEL|')}\n".encode(), format="xdmod")
    assert counts(batch) == {"rejected": 1}
    assert counts(retry(batch)) == {"rejected": 1}, "of another form it is not taken to be"
    mended()
    again = retry(IngestBatch.objects.latest("pk"))
    whole = ingest(cast.cluster, f"{good.replace('|CANCELLED by 380693|', '|NOVEL|')}\n".encode(), format="xdmod")
    assert (counts(again), counts(whole)) == ({"created": 1}, {"duplicate": 1})


def test_a_batch_that_failed_goes_on_where_it_was(cast: Cast, monkeypatch: pytest.MonkeyPatch, sent: list[int]) -> None:
    batch = services.accept_upload(actor=SYSTEM_ACTOR, cluster_name="aster", body=text(job_row(1)), format="sacct")
    with monkeypatch.context() as patch:
        patch.setattr("telemetry.services.ingest.rows.write", lambda *_: 1 / 0)
        for _ in range(3):
            services.run_batch(batch.pk)
    batch.refresh_from_db()
    assert (batch.state, services.can_retry(batch)) == ("failed", 1)
    assert retry(batch) == batch
    batch.refresh_from_db()
    assert (batch.state, batch.error, counts(batch)) == ("done", "", {"created": 1})
    assert not IngestPayload.objects.exists()


def test_a_header_that_is_understood_no_more_leaves_the_rows_to_be_tried_later(
    cast: Cast, mended, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    again = services.retry_batch(actor=SYSTEM_ACTOR, batch=ingest(cast.cluster, text(*NOVEL)))
    header = again.header
    IngestBatch.objects.filter(pk=again.pk).update(header="JobID|Else")
    assert services.run_batch(again.pk)
    again.refresh_from_db()
    assert (again.state, services.can_retry(again)) == ("failed", 1)
    IngestBatch.objects.filter(pk=again.pk).update(header=header)
    mended()
    assert counts(retry(again)) == {"created": 3}


def test_it_validates_who_retries_and_what_is_at_work(cast: Cast) -> None:
    batch = ingest(cast.cluster, text(*NOVEL))
    for role in ("auditor", "infosec", "pi"):
        with pytest.raises(NotAllowed):
            services.retry_batch(actor=actor_for_user(getattr(cast, role)), batch=batch)
    again = services.retry_batch(actor=SYSTEM_ACTOR, batch=batch)
    with pytest.raises(Conflict) as caught:
        services.retry_batch(actor=SYSTEM_ACTOR, batch=again)
    assert caught.value.code == "batch_at_work"


def test_staff_retry_with_one_click_and_see_what_became_of_it(cast: Cast, mended) -> None:  # type: ignore[no-untyped-def]
    batch = ingest(cast.cluster, text(*NOVEL))
    assert "again</button>" not in sign_in(cast.auditor).get(batch.get_absolute_url()).content.decode()
    staff = sign_in(cast.staff)
    page = staff.get(batch.get_absolute_url()).content.decode()
    assert "Try 3 rows again" in page
    mended()
    answer = staff.post(f"{batch.get_absolute_url()}retry/", follow=True)
    again = IngestBatch.objects.latest("pk")
    assert answer.redirect_chain[-1][0] == again.get_absolute_url() and "is tried again" in answer.content.decode()
    services.run_batch(again.pk)
    assert Job.objects.count() == 3
    page = staff.get(batch.get_absolute_url()).content.decode()
    assert "None of the refused rows is here any more" in page and "Try" not in page
    assert staff.post(f"{batch.get_absolute_url()}retry/").status_code == 409
