"""What is submitted: which script, under which name, in which folder, and how much of it others submit too (Table II).

Each row of the table loosens what "the same" is. What is shared on one row is on all looser ones, but for the submit
line: those lines take their script from standard input, as heredocs do, so that accounting knows no command of them.
"""

from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Final

from portal.demo.paper import published
from portal.demo.paper.drawing import Lot
from portal.demo.paper.population import Person

OWN: Final = "own"
FOLDER: Final = "work_dir"
_LOOSER: Final = ("command", "script", "template", "application")
_WORDS: Final = (
    "relax", "dock", "fold", "align", "sweep", "train", "infer", "mesh", "solve", "trace", "phase", "scan", "merge",
    "index", "plot", "stack", "filter", "assemble", "render", "sample", "reduce", "anneal", "ionize", "bin", "cluster",
    "embed", "score", "tune", "encode", "decode",
)  # fmt: skip
# What few jobs share comes of small submissions, else it would be one person's.
_MOST_ALIKE: Final = 3
_NOT_RARE: Final = ("script", "template", "application", OWN)
_KINDS: Final = {"command": 3, "submit_line": 6, "script": 24, "template": 30, "application": 30, FOLDER: 20}


@dataclass(frozen=True, slots=True)
class Work:
    """What one submission runs: enough to submit the same again. `shared` is the row of Table II it is planted for."""

    serial: int
    name: str
    folder: str
    script: str
    shared: str
    keys: tuple[tuple[str, str], ...]

    @property
    def is_rare(self) -> bool:
        """Whether few jobs share it."""
        return self.shared not in _NOT_RARE

    @property
    def pattern(self) -> str:
        """What is left of the command without numbers and folders, of one person; "" where accounting knows none."""
        if self.shared == "submit_line":
            return ""
        return OWN if self.shared == OWN else f"{self.shared}-{self.name.split('-')[0]}"


class Works:
    """Make up work, as much of it shared between people as the table says of `jobs` jobs."""

    def __init__(self, rng: Random, jobs: int) -> None:
        self._rng, self._serial = rng, 0
        rows = _planted(published.ALIKE, jobs)
        within = {kind: rows[kind] - rows[tighter] for tighter, kind in pairwise(_LOOSER)}
        within |= {"command": rows["command"], "submit_line": rows["submit_line"]}
        self._alike = Lot({**within, OWN: jobs - sum(within.values())}, rng)
        folders = _planted({FOLDER: published.SAME_FOLDER}, jobs)[FOLDER]
        self._folders = Lot({FOLDER: folders, OWN: jobs - folders}, rng)

    def make(self, person: Person, size: int) -> Work:
        """Make something new to submit `size` jobs of."""
        self._serial += 1
        kind = self._alike.draw(size, None if size <= _MOST_ALIKE else _NOT_RARE)
        shared = self._folders.draw(size) == FOLDER
        word = self._rng.choice(_WORDS[: _KINDS.get(kind, len(_WORDS))])
        place = self._rng.choice(_WORDS[: _KINDS[FOLDER]])
        folder = f"/n/shared/{place}" if shared else f"/n/home/{person.login}/{word}{self._serial % 9}"
        keys = [(row, f"{kind}-{word}") for row in _rows_of(kind)] + ([(FOLDER, place)] if shared else [])
        name = f"{word}-{self._serial}"
        return Work(self._serial, name, folder, _script(kind, word, person, self._serial), kind, tuple(keys))

    def take(self, work: Work, size: int) -> None:
        """Count work that is submitted again."""
        self._alike.take(work.shared, size)
        self._folders.take(FOLDER if FOLDER in dict(work.keys) else OWN, size)


def _planted(rows: dict[str, int], jobs: int) -> dict[str, int]:
    return {row: max(round(count * jobs / published.JOBS), published.FEWEST_ALIKE) for row, count in rows.items()}


def _rows_of(kind: str) -> tuple[str, ...]:
    """Name the rows of the table on which work of a kind is shared."""
    if kind == "submit_line":
        return (kind,)
    return _LOOSER[_LOOSER.index(kind) :] if kind in _LOOSER else ()


def _script(kind: str, word: str, person: Person, serial: int) -> str:
    """Write what stands behind sbatch's options; numbers and folders are what a template leaves out."""
    return {
        "command": f"/n/sw/examples/first-{word}.sh",
        "submit_line": "",
        "script": f"/n/home/{person.login}/bin/run-{word}.sh",
        "template": f"stage-{word}_{serial}.sh {serial}",
        "application": f"case-{word}_{serial}.sh {person.tag}",
    }.get(kind, f"job-{person.tag}_{serial}.sh")


def submit_line(work: Work, partition: str, mem_gib: int, size: int) -> str:
    """Write the line that a submission was made with; of a shared one nothing varies but the word it is shared by."""
    if work.shared == "submit_line":
        return f"sbatch --comment={dict(work.keys)['submit_line']} --parsable"
    array = f" --array=0-{size - 1}" if size > 1 else ""
    return f"sbatch --partition={partition} --mem={mem_gib}G --job-name={work.name}{array} {work.script}"
