"""A collector of one job, started by the job's prolog, task prolog or a wrapper, and ended with it.

Of its environment it reads SLURM_JOB_ID, SLURM_JOB_UID and TMPDIR.
"""

import fcntl
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from portal.cli.collect.config import Config
from portal.cli.files import Unusable

LARGEST_JOB = 2**32 - 1
OWN_PROCESSES = 2  # of ours, where we look at our own account


@dataclass(frozen=True)
class Job:
    """A job, and whose processes are looked at for it. `is_ours`: we run as that person, and are among them."""

    id: int
    uid: int
    is_ours: bool

    @property
    def only(self) -> str:
        """Return it as the helper takes it."""
        return f"{self.uid}:{self.id}"


def find(environ: Mapping[str, str]) -> Job:
    """Return the job that an environment tells. Errors: `Unusable`."""
    own = os.geteuid()
    uid = _number(environ, "SLURM_JOB_UID", least=0) if "SLURM_JOB_UID" in environ else own
    return Job(_number(environ, "SLURM_JOB_ID", least=1), uid, is_ours=uid == own)


def keep_apart(config: Config, job: Job) -> Config:
    """Return settings with a spool of the job's own: below the one that is named, else in the temporary folder."""
    if config.spool == Config.spool and job.is_ours:
        return replace(config, spool=f"{tempfile.gettempdir()}/gatehouse-collect-{job.uid}-{job.id}")
    return replace(config, spool=f"{config.spool}/job-{job.id}")


def make_spool(folder: Path) -> None:
    """Make a job's folder, which nobody else has made or may enter. Errors: `Unusable`."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise Unusable(f"{folder} cannot be made: {error.strerror} [spool_unusable]\n{_REMEDY}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise Unusable(f"{folder} is there and is not ours alone [spool_unusable]\n{_REMEDY}")


def take_over(folder: Path) -> None:
    """Take what collectors of jobs that ended here before could not send: their folders lie beside ours."""
    for other in folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*"):
        with suppress(OSError):
            if other != folder and other.lstat().st_uid == os.geteuid() and any(other.glob("*.batch")):
                _empty(other, folder)


def _empty(other: Path, folder: Path) -> None:
    lock = os.open(other / ".lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody fills it any more
        for batch in other.glob("*.batch"):
            batch.rename(folder / batch.name)
        clear_spool(other)
    finally:
        os.close(lock)


def clear_spool(folder: Path) -> None:
    """Remove a job's folder if nothing waits in it."""
    with suppress(OSError):
        if not any(folder.glob("*.batch")):
            (folder / "rejected").rmdir()
            (folder / ".lock").unlink()
            folder.rmdir()


_REMEDY = "Name by `spool` a folder in which the job may make one of its own."


def _number(environ: Mapping[str, str], name: str, *, least: int) -> int:
    text = environ.get(name, "")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(LARGEST_JOB)) else -1
    if not least <= number <= LARGEST_JOB:
        raise Unusable(
            f"The environment tells no job: {name} is not set, or is no number [no_job]\n"
            "Start it inside a job, by its prolog or by a wrapper; for a whole node leave --in-job out."
        )
    return number
