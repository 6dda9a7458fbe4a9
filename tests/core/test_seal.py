"""The audit trail: recorded in the act's transaction, chained afterwards, and every tampering found."""

import socket
import threading
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from portal.core import anchors, audit, clock
from portal.core.actors import SYSTEM, ActorRef
from portal.core.models import AuditEvent, Counter


@pytest.fixture(autouse=True)
def anchor_file(settings: Settings, tmp_path: Path) -> Path:
    """Anchors of one test stay its own."""
    settings.AUDIT_ANCHOR_FILE = str(tmp_path / "audit" / "anchors.jsonl")
    return tmp_path / "audit" / "anchors.jsonl"


def write(count: int = 1) -> list[AuditEvent]:
    """Record so many events."""
    return [
        audit.record(
            actor=SYSTEM, verb="thing.change", object_kind="thing", object_id=n, object_label=f"thing {n}",
            before={"n": n}, after={"n": n + 1, "at": clock.now()},
        )
        for n in range(count)
    ]  # fmt: skip


def faults(anchored: dict[int, str] | None = None) -> list[str]:
    return [fault.message for fault in audit.verify(anchored or {})]


def raw(sql: str, *params: object) -> None:
    """Change rows as an intruder would: past the models."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


@pytest.mark.django_db
def test_a_sealed_chain_verifies_and_every_row_follows_the_one_before() -> None:
    write(5)
    assert audit.seal() == 5
    assert audit.seal() == 0
    events = list(AuditEvent.objects.order_by("seq"))
    assert [event.seq for event in events] == [1, 2, 3, 4, 5]
    assert [event.prev_hash for event in events] == [audit.GENESIS, *(event.hash for event in events[:-1])]
    assert audit.head() == (5, events[-1].hash)
    assert faults() == []


@pytest.mark.django_db
def test_a_long_backlog_is_sealed_in_chunks() -> None:
    write(7)
    assert audit.seal(limit=3) == 3
    assert audit.seal_all() == 4
    assert faults() == []


@pytest.mark.django_db
def test_an_empty_trail_verifies() -> None:
    assert audit.head() == (0, audit.GENESIS)
    assert faults() == []


@pytest.mark.django_db
def test_an_act_that_is_rolled_back_leaves_no_trace() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        write()
        raise ZeroDivisionError
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "column", ["verb", "actor_id", "actor_label", "on_behalf_of", "object_id", "object_label", "request_id"]
)
def test_a_changed_column_is_found(column: str) -> None:
    write(3)
    audit.seal()
    raw(f"UPDATE core_auditevent SET {column} = 'forged' WHERE seq = 2")  # noqa: S608
    assert faults() == ["was changed after it was sealed"]


@pytest.mark.django_db
def test_a_changed_time_and_a_changed_lab_are_found() -> None:
    write(2)
    audit.seal()
    AuditEvent.objects.filter(seq=1).update(at=clock.now() + timedelta(seconds=1))
    AuditEvent.objects.filter(seq=2).update(lab_id=9)
    assert faults() == ["was changed after it was sealed"] * 2


@pytest.mark.django_db
def test_a_changed_payload_is_found() -> None:
    write(2)
    audit.seal()
    AuditEvent.objects.filter(seq=1).update(payload={"before": {"n": 99}})
    assert faults() == ["has a payload unlike its digest"]


@pytest.mark.django_db
def test_a_rehashed_row_breaks_the_link_of_the_next() -> None:
    write(3)
    audit.seal()
    event = AuditEvent.objects.get(seq=2)
    event.verb = "thing.forge"
    AuditEvent.objects.filter(seq=2).update(verb=event.verb, hash=audit.link_hash(event, 2, event.prev_hash))
    assert faults() == ["does not follow the row before it"]


@pytest.mark.django_db
def test_a_missing_row_is_found() -> None:
    write(4)
    audit.seal()
    AuditEvent.objects.filter(seq__in=(2, 3)).delete()
    assert "rows 2 to 3 are missing" in faults()


@pytest.mark.django_db
def test_deleted_last_rows_are_found_by_the_head() -> None:
    write(4)
    audit.seal()
    AuditEvent.objects.filter(seq__gt=2).delete()
    assert faults() == ["the chain's head is 4, the last row that leads to it is 2"]


@pytest.mark.django_db
def test_deleted_last_rows_and_a_forged_head_are_found_by_the_anchor() -> None:
    write(4)
    audit.seal()
    anchors.write_anchor()
    AuditEvent.objects.filter(seq__gt=2).delete()
    last = AuditEvent.objects.get(seq=2)
    Counter.objects.filter(name=audit.CHAIN).update(value=2, note=last.hash)
    assert faults() == []
    assert faults(anchors.read_anchors()) == ["anchored up to 4, the last row is 2"]


@pytest.mark.django_db
def test_a_chain_that_was_rewritten_from_the_start_is_found_by_the_anchor() -> None:
    write(3)
    audit.seal()
    anchors.write_anchor()
    AuditEvent.objects.filter(seq=1).update(verb="thing.forge")
    AuditEvent.objects.update(seq=None, hash="", prev_hash="")
    Counter.objects.all().delete()
    audit.seal()
    assert faults() == []
    assert faults(anchors.read_anchors()) == ["is unlike the head anchored outside the database"]


@pytest.mark.django_db
def test_a_row_smuggled_past_the_head_is_found() -> None:
    write(2)
    audit.seal()
    write(1)
    AuditEvent.objects.filter(seq=None).update(seq=7, prev_hash="x", hash="y")
    assert faults() == ["1 row lies past the chain's head"]


@pytest.mark.django_db
def test_a_row_that_was_never_sealed_is_found_once_it_is_a_minute_old() -> None:
    write(2)
    assert faults() == []
    AuditEvent.objects.update(at=clock.now() - timedelta(minutes=2))
    assert faults() == ["2 rows were never sealed"]


@pytest.mark.django_db
def test_an_erased_payload_keeps_the_chain_and_is_itself_recorded() -> None:
    events = write(3)
    audit.seal()
    audit.erase_payload(events[1].pk, actor=ActorRef("user", "7", "infosec"), reason="a secret was in it")
    audit.seal()
    erased = AuditEvent.objects.get(pk=events[1].pk)
    assert (erased.payload, erased.salt) == (None, "")
    assert erased.digest
    last = AuditEvent.objects.get(seq=4)
    assert (last.verb, last.object_id) == ("audit.erase_payload", str(events[1].pk))
    assert last.payload == {"reason": "a secret was in it"}
    assert faults() == []


@pytest.mark.django_db
@pytest.mark.parametrize("nothing", [None, "null"])
def test_a_payload_that_vanished_without_a_recorded_erasure_is_found(nothing: str | None) -> None:
    write(3)
    audit.seal()
    raw("UPDATE core_auditevent SET payload = %s, salt = '' WHERE seq = 2", nothing)
    assert faults() == ["lost its payload, and no erasure is on record"]


@pytest.mark.django_db
def test_the_salt_hides_a_guessable_payload() -> None:
    first, second = write(1) + write(1)
    assert first.payload["before"] == second.payload["before"]
    assert first.digest != second.digest


@pytest.mark.django_db
def test_an_event_is_neither_saved_again_nor_deleted() -> None:
    (event,) = write()
    with pytest.raises(RuntimeError, match="never changed"):
        event.save()
    with pytest.raises(RuntimeError, match="never deleted"):
        event.delete()


@pytest.mark.django_db(transaction=True)
def test_sealers_at_the_same_time_make_one_chain() -> None:
    write(40)
    sealed: list[int] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            while count := audit.seal(limit=3):
                sealed.append(count)
        except BaseException as error:  # noqa: BLE001 - shown by the test's thread
            errors.append(error)
        finally:
            connections.close_all()

    _run_together(*[run] * 4)
    assert errors == []
    assert sum(sealed) == 40
    assert AuditEvent.objects.filter(seq=None).count() == 0
    assert faults() == []


def _run_together(*acts: Callable[[], None]) -> None:
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_records_waits_for_no_other() -> None:
    """Two acts record side by side; the sealer sees each once it is committed."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    entered, release = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            write()
            entered.set()
            release.wait(10)
        connections.close_all()

    thread = threading.Thread(target=slow)
    thread.start()
    assert entered.wait(10)
    write()
    assert audit.seal() == 1
    release.set()
    thread.join(10)
    assert audit.seal() == 1
    assert faults() == []


@pytest.mark.django_db
def test_a_head_is_anchored_once_and_sealing_comes_first(anchor_file: Path) -> None:
    write(2)
    assert anchors.write_anchor() == 2
    assert anchors.write_anchor() == 2
    assert anchors.read_anchors() == {2: audit.head()[1]}
    write(1)
    assert anchors.write_anchor() == 3
    assert len(anchor_file.read_text().splitlines()) == 2


@pytest.mark.django_db
def test_a_torn_line_in_the_anchor_file_does_not_hide_the_others(anchor_file: Path) -> None:
    write(2)
    anchors.write_anchor()
    with anchor_file.open("a") as file:
        file.write('{"at": "2026-')
    write(1)
    assert anchors.write_anchor() == 3
    assert set(anchors.read_anchors()) == {2, 3}


@pytest.mark.django_db
def test_nothing_to_anchor_makes_no_file(anchor_file: Path) -> None:
    assert anchors.write_anchor() == 0
    assert not anchor_file.exists()


@pytest.mark.django_db
def test_the_command_seals_what_is_left_and_proves_the_chain() -> None:
    write(3)
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert out.getvalue().startswith("3 events verified")
    AuditEvent.objects.filter(seq=2).update(verb="thing.forge")
    err = StringIO()
    with pytest.raises(CommandError, match="1 fault"):
        call_command("verify_audit", stderr=err)
    assert err.getvalue() == "seq 2: was changed after it was sealed\n"


def said_by_the_command() -> str:
    out = StringIO()
    call_command("verify_audit", stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_the_command_says_what_anchors_prove(anchor_file: Path) -> None:
    assert said_by_the_command() == "There is nothing to verify: no audit event is sealed yet.\n"
    write(1)
    assert "1 event verified" in said_by_the_command() and "No anchor to compare with yet" in said_by_the_command()
    anchors.write_anchor()
    assert said_by_the_command().endswith("1 anchor agrees.\n")
    write(1)
    anchors.write_anchor()
    assert said_by_the_command().endswith("2 anchors agree.\n")


@pytest.mark.django_db
def test_an_old_chain_without_anchors_is_told_where_they_should_be(anchor_file: Path) -> None:
    with clock.at(clock.now() - timedelta(hours=3)):
        write(1)
    assert "No anchor to compare with yet" in said_by_the_command(), "an import may be older than the portal"
    MigrationRecorder.Migration.objects.update(applied=clock.now() - timedelta(hours=3))
    assert f"should be noted every hour in {anchor_file}" in said_by_the_command()


@pytest.mark.django_db
def test_the_command_leaves_rows_unsealed_when_told_to() -> None:
    write(1)
    call_command("verify_audit", "--no-seal", stdout=StringIO())
    assert AuditEvent.objects.get().seq is None


@pytest.mark.django_db
def test_a_head_goes_to_syslog_by_datagram(settings: Settings) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        settings.AUDIT_ANCHOR_SYSLOG = f"127.0.0.1:{receiver.getsockname()[1]}"
        write(1)
        anchors.write_anchor()
        assert b"gatehouse-audit" in receiver.recv(4096)
