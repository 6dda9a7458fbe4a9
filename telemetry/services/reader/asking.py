"""Asking a Slurm by a program of this host: within limits, counted, and what went wrong said with what to do."""

import os
import subprocess
import time
from dataclasses import dataclass, field
from typing import ClassVar, Final

from portal.core.errors import DomainError
from portal.core.running import Ran, TooMuch, run_within
from telemetry.engine.redaction import redact_raw
from telemetry.engine.slurm import asking
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.queue import Notes
from telemetry.engine.slurm.queue_texts import Texts
from telemetry.services.ingest.feed import redaction_key

TIMEOUT_S: Final = 60.0
# On one command line: the kernel takes megabytes, slurmdbd is asked for no more than it answers at once.
IDS_A_CALL: Final = 500
MOST_BYTES: Final = 256 * 1024 * 1024  # of an answer, which is read whole: a hundred thousand records and more
_SHOWN: Final = 300


class SlurmUnavailable(DomainError):
    """Slurm did not answer, or not so that its answer can be believed."""

    status, title, code = 503, "Slurm does not answer", "slurm_unavailable"


def describe(error: DomainError | FormatError) -> str:
    """Return what went wrong as one line to show and keep: what a command printed may be a secret, or move a cursor."""
    text, _ = redact_raw(error.detail, key=redaction_key(), keep=_SHOWN)
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def describe_with_remedy(error: DomainError | FormatError) -> str:
    """Return what went wrong and what to do about it, as one line to show and keep."""
    return f"{describe(error)} {error.remedy}".strip()


@dataclass
class Asker:
    """Runs programs that ask a Slurm. `calls` counts how often, `busy_s` how long they took."""

    install: ClassVar[str] = asking.NO_COMMANDS  # what to do where there is no such program

    environment: dict[str, str] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S
    most_bytes: int = MOST_BYTES
    zone: str = "UTC"  # in which times are printed
    calls: int = 0
    busy_s: float = 0.0
    notes: Notes = field(default_factory=dict)
    texts: Texts | None = None

    def run(self, *command: str, name: str) -> Ran:
        """Run a program to its end, however that is. Errors: `SlurmUnavailable` where it cannot run, or ran too far."""
        began = time.monotonic()
        self.calls += 1
        try:
            return run_within(
                command,
                environment=asking.clean_environment(os.environ | self.environment) | {"TZ": self.zone},
                timeout_s=self.timeout_s,
                most_bytes=self.most_bytes,
            )
        except (OSError, subprocess.TimeoutExpired, TooMuch) as error:
            raise self._explain(name, command[0], error) from None
        finally:
            self.busy_s += time.monotonic() - began

    def _explain(self, name: str, program: str, error: Exception) -> SlurmUnavailable:
        if isinstance(error, subprocess.TimeoutExpired):
            return SlurmUnavailable(
                f"{name} took more than {self.timeout_s:.0f} s.", code="slurm_slow",
                remedy="Look at the load of slurmctld and slurmdbd (sdiag).",
            )  # fmt: skip
        by_hand = f"Run {program} by hand: is it Slurm's own?"
        if isinstance(error, TooMuch):
            return SlurmUnavailable(
                f"{name} printed more than {self.most_bytes} bytes.", code="slurm_too_much", remedy=by_hand
            )
        if isinstance(error, FileNotFoundError):
            return SlurmUnavailable(f"This host has no {program}.", code="slurm_missing", remedy=self.install)
        words = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        return SlurmUnavailable(f"{program} cannot be run: {words}.", code="slurm_missing", remedy=by_hand)


def refuse_unless_quiet(name: str, ran: Ran) -> None:
    """Raise `SlurmUnavailable` unless a program ended well and without a word beside its answer.

    An empty answer with a warning is no empty queue, and half an answer is no answer.
    """
    complaint = ran.complaint.decode(errors="replace").strip()
    if ran.status or complaint:
        raise _unavailable(name, complaint or f"it ended with {ran.status}")


def _unavailable(name: str, complaint: str) -> SlurmUnavailable:
    """Say what a program complained of, and what to do where the complaint is a known one."""
    detail, code, remedy = asking.explain_complaint(name, complaint)
    return SlurmUnavailable(detail, code=code, remedy=remedy or "Look at slurmctld and slurmdbd.")
