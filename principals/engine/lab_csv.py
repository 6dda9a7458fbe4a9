"""Labs, their people and accounts from a CSV file: our own columns, or those of a ColdFront export."""

import csv
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import _csv

# What a column may be called, the most telling name first. ColdFront's fields: Project.title, Project.pi,
# ProjectUser.user, .role and .status, and the allocation's attribute slurm_account_name.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "lab": ("lab", "project_code", "slurm_account_name", "account", "project", "project_title", "title"),
    "title": ("title", "project_title", "project"),
    "account": ("account", "slurm_account_name", "slurm_account"),
    "login": ("username", "login", "user", "user_username"),
    "role": ("role", "role_name"),
    "pi": ("pi", "pi_username"),
    "status": ("status", "status_name"),
    "email": ("email", "user_email"),
}
ROLES: Final = {"pi": "pi", "manager": "manager", "lab manager": "manager", "user": "member", "member": "member",
                "": "member"}  # fmt: skip
_LOGIN: Final = re.compile(r"[\w.-]{1,64}")
_ACCOUNT: Final = re.compile(r"[\w.-]{1,64}")


@dataclass(frozen=True, slots=True)
class LabLine:
    """One line: a lab, and a person with their role in it; `fault` says why it says nothing."""

    number: int
    lab: str = ""
    title: str = ""
    account: str = ""
    login: str = ""
    role: str = "member"
    email: str = ""
    pi: str = ""
    fault: str = ""


def read_labs(lines: Iterable[str]) -> Iterator[LabLine]:
    """Read a file with a head line; of labs whose names would be one here, only the first.

    Raises ValueError where it has no column for labs, or none for people, and for what is no CSV.
    """
    try:
        yield from _read(csv.reader(lines))
    except csv.Error as error:  # a cell of more than 128 KiB, say
        raise ValueError(f"That is no CSV: {error}.") from error


def _read(rows: "_csv.Reader") -> Iterator[LabLine]:
    named = dict[str, str]()
    head = [_column(name) for name in next(rows, [])]
    places = {what: next((head.index(name) for name in names if name in head), -1) for what, names in COLUMNS.items()}
    if places["lab"] < 0 or (places["login"] < 0 and places["pi"] < 0):
        raise ValueError("The first line names the columns: at least lab (or title) and username (or pi).")
    for row in rows:
        if any(cell.strip() for cell in row):
            said = {what: row[at].strip() if 0 <= at < len(row) else "" for what, at in places.items()}
            line = _line(rows.line_num, said)
            first = named.setdefault(line.lab, said["lab"]) if not line.fault else said["lab"]
            if _plain(first) != _plain(said["lab"]):
                words = f"Another lab of this file is called {line.lab} already. Give each a name in a column “lab”."
                line = LabLine(line.number, lab=line.lab, fault=words)
            yield line


def _line(number: int, said: dict[str, str]) -> LabLine:
    lab = _slug(said["lab"])
    role = ROLES.get(said["role"].lower())
    faults = (
        (not all(cell.isprintable() for cell in said.values()), "It holds characters that cannot be shown."),
        (not lab, "No lab is named."),
        (said["status"].lower() not in ("", "active"), f"Its status is {said['status'][:40]}, not active."),
        (not (said["login"] or said["pi"]), "Nobody is named."),
        (any(name and not _LOGIN.fullmatch(name) for name in (said["login"], said["pi"])), "That is no login name."),
        (bool(said["account"]) and not _ACCOUNT.fullmatch(said["account"]), "That is no name of a Slurm account."),
        (role is None, f"No such role: {said['role'][:40]}. Roles are pi, manager and member."),
    )
    if fault := next((words for broken, words in faults if broken), ""):
        return LabLine(number, lab=lab, fault=fault)
    return LabLine(
        number, lab, said["title"][:150], said["account"], said["login"], role or "member", said["email"], said["pi"]
    )


def _column(name: str) -> str:
    return re.sub(r"[^a-z]+", "_", name.lower().lstrip("\ufeff")).strip("_")


def _plain(name: str) -> str:
    return " ".join(name.casefold().split())


def _slug(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9_-]+", "-", plain).strip("-")[:64]
