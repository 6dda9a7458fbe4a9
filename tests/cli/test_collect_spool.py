"""What waits to be sent is whole, bounded, and counted where it is lost."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.cli.collect import spool as spool_module
from portal.cli.collect.spool import Spool
from portal.cli.files import Unusable
from telemetry.engine.collector.batches import Batch


def batch(name: str, events: int = 1, size: int = 0) -> Batch:
    body = json.dumps({"batch": name, "health": {"events": events}, "x": "x" * size}).encode()
    return Batch(name, events, body)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path / "spool", limit_bytes=10_000)
    made.open()
    return made


def names(spool: Spool) -> list[str]:
    return [waiting.id for path in spool.waiting() if (waiting := spool.read(path))]


def test_a_batch_waits_whole(spool: Spool) -> None:
    spool.put(batch("one-1"))
    spool.put(batch("two-2"))
    assert names(spool) == ["one-1", "two-2"]
    waiting = spool.read(spool.waiting()[0])
    assert waiting is not None and waiting.body == batch("one-1").body


@pytest.mark.parametrize("cut", [lambda data: data[:-1], lambda data: data.replace(b'"events": 1', b'"events": 2')])
def test_what_was_cut_or_altered_is_no_batch(spool: Spool, cut: Callable[[bytes], bytes]) -> None:
    spool.put(batch("one"))
    [path] = spool.waiting()
    path.write_bytes(cut(path.read_bytes()))
    assert spool.read(path) is None


def test_what_arrived_is_forgotten(spool: Spool) -> None:
    spool.put(batch("one"))
    [path] = spool.waiting()
    spool.remove(path)
    spool.remove(path)
    assert (names(spool), spool.take_lost()) == ([], 0)


def test_without_room_the_oldest_leave_and_their_events_are_counted(spool: Spool) -> None:
    for number in range(5):
        spool.put(batch(str(number), events=10 + number, size=4000))
    assert names(spool) == ["3", "4"]
    assert spool.take_lost() == 10 + 11 + 12
    assert spool.take_lost() == 0


def test_there_are_never_more_files_than_are_looked_through(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "MOST_FILES", 3)
    for number in range(6):
        spool.put(batch(str(number)))
    assert names(spool) == ["3", "4", "5"]


def test_what_is_refused_is_set_aside_and_its_events_are_lost(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "MOST_REJECTED", 2)
    for number in range(4):
        spool.put(batch(str(number), events=7))
    for path in spool.waiting():
        spool.reject(path)
    assert names(spool) == []
    assert [path.name.rpartition("-")[2] for path in sorted((tmp_path / "spool" / "rejected").iterdir())] == [
        "2.batch", "3.batch",
    ]  # fmt: skip
    assert spool.take_lost() == 28


def test_half_a_file_of_a_run_that_was_cut_off_is_no_batch(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()
    (folder / ".half-0001-x.batch").write_bytes(b"sha256:ab\n{")
    spool = Spool(folder, limit_bytes=10_000)
    spool.open()
    assert names(spool) == [] and not list(folder.glob(".half*"))


def test_batches_of_an_earlier_run_come_first(tmp_path: Path, spool: Spool) -> None:
    spool.put(batch("old"))
    later = Spool(tmp_path / "spool", limit_bytes=10_000)
    later.put(batch("new"))
    assert names(later) == ["old", "new"]


def test_one_collector_has_a_folder(tmp_path: Path, spool: Spool) -> None:
    with pytest.raises(Unusable, match=r"\[already_running\]"):
        Spool(tmp_path / "spool", limit_bytes=1).open()


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unusable, match=r"\[spool_unusable\]"):
        Spool(tmp_path / "file", limit_bytes=1).open()


def test_a_disk_without_room_loses_the_batch_and_counts_it(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        spool.put(batch("one", events=3))
    assert (names(spool), spool.take_lost()) == ([], 3)
