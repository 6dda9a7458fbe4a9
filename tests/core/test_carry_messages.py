"""The embedded profile's broker hands over whole messages, whoever reads while they are written."""

import threading
from pathlib import Path

import pytest
from kombu import Connection

from portal.celery import app
from portal.core import broker

MESSAGES = 400


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


def test_a_file_that_is_not_whole_yet_is_no_message(connection: Connection, tmp_path: Path) -> None:
    with connection.clone() as own:
        queue = own.SimpleQueue("work")
        (tmp_path / "queue" / "1_a.work.msg.part").write_text("")
        with pytest.raises(queue.Empty):
            queue.get(block=False)
