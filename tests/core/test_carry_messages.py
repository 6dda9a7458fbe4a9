"""The embedded profile's broker hands over whole messages, whoever reads while they are written."""

import contextlib
import resource
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection

from portal.celery import app
from portal.core import broker

MESSAGES = 400  # each test has a queue of its own name: Kombu remembers in the process which are bound


@pytest.fixture
def connection(tmp_path: Path) -> Connection:
    folders = {
        "data_folder_in": "queue",
        "data_folder_out": "queue",
        "processed_folder": "done",
        "control_folder": "ctl",
    }
    for name in set(folders.values()):
        (tmp_path / name).mkdir()
    broker.Transport.global_state.clear()  # what a process bound it does not bind again, in another folder either
    options = {key: str(tmp_path / name) for key, name in folders.items()}
    return Connection("filesystem://localhost", transport_options=options)


def test_the_portal_lets_file_addresses_mean_it(connection: Connection) -> None:
    assert app.main == "gatehouse"  # importing the portal's app is what sets it
    assert isinstance(connection.transport, broker.Transport)


def test_a_reader_never_sees_half_a_message(connection: Connection, tmp_path: Path) -> None:
    def write() -> None:
        with connection.clone() as own:
            queue = own.SimpleQueue("work")
            for number in range(MESSAGES):
                queue.put({"number": number, "text": "x" * 20_000})

    found: list[int] = []
    with connection.clone() as own:
        queue = own.SimpleQueue("work")
        writer = threading.Thread(target=write)
        writer.start()
        while len(found) < MESSAGES:
            message = queue.get(timeout=30)
            found.append(message.payload["number"])
            message.ack()
        writer.join()
    assert sorted(found) == list(range(MESSAGES))
    assert list((tmp_path / "queue").iterdir()) == []


def test_a_message_never_leaves_the_brokers_folder(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with connection.clone() as own:
        queue = own.SimpleQueue("leaves")
        queue.put({"number": 1})
        message = queue.get(timeout=5)
        assert message.payload == {"number": 1}
        message.ack()
    assert [list((tmp_path / name).iterdir()) for name in ("queue", "done")] == [[], []]


def test_every_message_is_taken_once_by_whoever_is_faster(connection: Connection) -> None:
    found: list[int] = []

    def take() -> None:
        with connection.clone() as own:
            queue = own.SimpleQueue("races")
            with contextlib.suppress(queue.Empty):
                while True:
                    message = queue.get(block=False)
                    found.append(message.payload)
                    message.ack()

    with connection.clone() as own:
        queue = own.SimpleQueue("races")
        for number in range(MESSAGES):
            queue.put(number)
        takers = [threading.Thread(target=take) for _ in range(3)]
        for taker in takers:
            taker.start()
        for taker in takers:
            taker.join()
    assert sorted(found) == list(range(MESSAGES))


def test_a_file_that_is_not_whole_yet_is_no_message(connection: Connection, tmp_path: Path) -> None:
    with connection.clone() as own:
        queue = own.SimpleQueue("work")
        (tmp_path / "queue" / "1_a.work.msg.part").write_text("")
        with pytest.raises(queue.Empty):
            queue.get(block=False)


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(b'{"body": "aGV5'),
    "binary": lambda path: path.write_bytes(b"\xff\xfe\0"),
    "another thing": lambda path: path.write_bytes(b"[]"),
    "nothing in it": lambda path: path.write_bytes(b"{}"),
    "a folder": lambda path: path.mkdir(),
    "a link to nothing": lambda path: path.symlink_to("/nowhere"),
    "a link that never ends": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_message_is_set_aside_and_the_next_one_read(
    connection: Connection, tmp_path: Path, damage: str
) -> None:
    with connection.clone() as own:
        queue = own.SimpleQueue("work")
        DAMAGE[damage](tmp_path / "queue" / "0_a.work.msg")
        queue.put({"number": 1})
        assert queue.get(timeout=2).payload == {"number": 1}
    assert [path.name for path in (tmp_path / "done").iterdir()] == ["0_a.work.msg"]


def test_a_table_of_queues_that_was_cut_short_is_written_anew(connection: Connection, tmp_path: Path) -> None:
    (tmp_path / "ctl" / "work.exchange").write_bytes(b"")
    with connection.clone() as own:
        queue = own.SimpleQueue("work")
        queue.put({"number": 1})
        assert queue.get(timeout=2).payload == {"number": 1}
    assert (tmp_path / "ctl" / "work.exchange").read_text() == '[["work", "", "work"]]'


def test_a_full_disk_refuses_the_message_and_leaves_nothing(connection: Connection, tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with connection.clone() as own:
        queue = own.SimpleQueue("work")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                queue.put({"text": "x" * 20_000})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, before)
    assert list((tmp_path / "queue").iterdir()) == []


def test_messages_never_leave_their_folders(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with connection.clone() as own:
        queue = own.SimpleQueue("work")
        queue.put({"number": 1})
        assert queue.get(timeout=2).payload == {"number": 1}
    assert list((tmp_path / "done").iterdir()) == []
