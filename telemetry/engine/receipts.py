"""Receipts: words in a job's comment that say which agent submitted it. They open nothing, and nobody guesses one.

An agent asks for one before it submits; a trial's receipt is one too. A job names it with `sbatch --comment`, or a site
script writes it beside the job, among whatever else stands there.
"""

import re
import secrets
from collections.abc import Mapping
from typing import Final

from telemetry.engine import labels

LETTERS: Final = "23456789abcdefghjkmnpqrstuvwxyz"  # none that is taken for another
LENGTH: Final = 12
JOB: Final = "rcp_"
TRIAL: Final = "trl_"
_RECEIPT: Final = re.compile(rf"(?<![0-9A-Za-z_])(?:{JOB}|{TRIAL})[{LETTERS}]{{{LENGTH}}}(?![0-9A-Za-z_])")
_NONE: Final[frozenset[str]] = frozenset()


def new_receipt(prefix: str) -> str:
    """Return a receipt nobody can guess: a prefix (`JOB`, `TRIAL`) and twelve letters, 59 bits."""
    return prefix + "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def receipts_in(comment: str) -> frozenset[str]:
    """Return the receipts that a comment names, whatever else stands there."""
    return frozenset(_RECEIPT.findall(comment)) if JOB in comment or TRIAL in comment else _NONE


def receipts_of(comment: str, extra: Mapping[str, str]) -> frozenset[str]:
    """Return the receipts that a job names: in its comment, or in the administrator's among its other columns."""
    beside = extra.get(labels.COLUMN) if extra else None
    return receipts_in(comment) | receipts_in(beside) if beside else receipts_in(comment)
