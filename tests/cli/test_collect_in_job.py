"""A job's collector has a folder of its own, and sends what those of earlier jobs could not."""

import os
import re
from pathlib import Path

import pytest

from portal.cli.collect import in_job
from portal.cli.collect.config import Config
from portal.cli.collect.in_job import Job, find, keep_apart, make_spool, take_over
from portal.cli.collect.spool import Spool
from portal.cli.files import Unusable
from telemetry.engine.collector.batches import Batch

OWN = os.geteuid()


def spool_at(folder: Path) -> Spool:
    make_spool(folder)
    spool = Spool(folder, limit_bytes=1 << 20)
    spool.open()
    return spool


def end(spool: Spool) -> None:
    os.close(spool._locked)


def test_whose_job_it_is_is_told_by_the_environment() -> None:
    assert find({"SLURM_JOB_ID": "7"}) == Job(7, OWN, is_ours=True)
    other = find({"SLURM_JOB_ID": "7", "SLURM_JOB_UID": str(OWN + 1)})
    assert (other, other.only) == (Job(7, OWN + 1, is_ours=False), f"{OWN + 1}:7")


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "7_1", "4294967296", "9" * 5000, "²"])
def test_what_is_no_job_is_told(text: str) -> None:
    with pytest.raises(Unusable, match=re.escape("[no_job]")):
        find({"SLURM_JOB_ID": text})


def test_each_job_has_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_job.tempfile, "gettempdir", lambda: "/scratch")
    ours, theirs = Job(7, 1000, is_ours=True), Job(7, 1000, is_ours=False)
    assert keep_apart(Config(), ours).spool == "/scratch/gatehouse-collect-1000-7"
    assert keep_apart(Config(), theirs).spool == "/var/lib/gatehouse-collect/job-7"
    assert keep_apart(Config(spool="/x"), ours).spool == "/x/job-7"


@pytest.mark.parametrize("fault", ["open to others", "a link", "a file"])
def test_a_folder_that_is_not_ours_alone_is_refused(tmp_path: Path, fault: str) -> None:
    place, other = tmp_path / "job-7", tmp_path / "other"
    other.mkdir(mode=0o700)
    if fault == "a file":
        place.touch()
    elif fault == "a link":
        place.symlink_to(other)
    else:
        place.mkdir(mode=0o755)
    with pytest.raises(Unusable, match=re.escape("[spool_unusable]")):
        make_spool(place)


def test_what_an_earlier_job_s_could_not_send_is_taken_over_once_it_ended(tmp_path: Path) -> None:
    ended, living, none = (spool_at(tmp_path / f"job-{number}") for number in (1, 2, 3))
    for spool in (ended, living):
        spool.put(Batch("a-b", 1, b"{}"))
    end(ended)
    end(none)
    own = spool_at(tmp_path / "job-9")
    take_over(tmp_path / "job-9")
    [path] = own.waiting()
    waiting = own.read(path)
    assert waiting is not None and (waiting.id, waiting.body) == ("a-b", b"{}")
    assert len(living.waiting()) == 1
    assert {each.name for each in tmp_path.iterdir()} == {"job-2", "job-3", "job-9"}
    end(own)
    end(living)
