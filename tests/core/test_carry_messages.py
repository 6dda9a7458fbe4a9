"""The embedded profile's broker hands over whole messages, whoever reads while they are written."""

import contextlib
import threading
from pathlib import Path

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
