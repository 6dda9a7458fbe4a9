"""Readers of what `sacctmgr --parsable2 show qos|assoc|user` prints: a header line, then one row a line.

The header says what stands where; a row that is wider or narrower spoils the reading, for then a name holds a
separator and nobody knows which.

Source: sacctmgr(1); 22.05 live, 24.11 and 25.11 as recorded.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias, TypeVar

from telemetry.engine.slurm.errors import FieldError, FormatError
from telemetry.engine.slurm.inventory.forms import Association, Bound, Form, Limits, Qos, Reading
from telemetry.engine.slurm.inventory.values import read_names, read_tres_limit
from telemetry.engine.slurm.values import parse_count, parse_duration

_GROUP: Final = "GrpTRES,GrpTRESMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall"
_QOS: Final = f"Name,Priority,Flags,{_GROUP},MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRES"
_ASSOCIATION: Final = f"Cluster,Account,ParentName,User,Partition,QOS,DefaultQOS,{_GROUP},MaxJobs,MaxSubmit"
_DEFAULTS: Final = "Cluster,User,DefaultAccount"
QOS_COMMAND: Final = ("sacctmgr", "--parsable2", "show", "qos", f"format={_QOS}")
# To be followed by `cluster=NAME`: one slurmdbd serves many.
ASSOCIATIONS_COMMAND: Final = ("sacctmgr", "--parsable2", "show", "assoc", f"format={_ASSOCIATION}")
DEFAULTS_COMMAND: Final = ("sacctmgr", "--parsable2", "show", "user", "withassoc", f"format={_DEFAULTS}")
# Columns that sacctmgr does not call by the name they are asked for.
_SHOWN_AS: Final = {"def qos": "defaultqos", "def acct": "defaultaccount", "par name": "parentname"}

_Row: TypeAlias = Mapping[str, str]
_Built = TypeVar("_Built")


def read_qos(text: str) -> Reading[Qos]:
    """Read what `QOS_COMMAND` printed, or any format with these columns.

    Errors: FormatError `not_sacctmgr`, `missing_columns`, `empty_inventory`.
    """
    return Reading(_some(tuple(_rows(text, _QOS, _qos))))


def read_associations(text: str, defaults: str | None = None) -> Reading[Association]:
    """Read what `ASSOCIATIONS_COMMAND` printed and, where given, what `DEFAULTS_COMMAND` printed.

    Without the latter nobody says which account is a user's default; without the column ParentName nobody says which
    account stands above. Errors: as `read_qos`.
    """
    found = _some(tuple(_rows(text, _ASSOCIATION.replace("ParentName,", ""), _association)))
    if defaults is None:
        return Reading(found)
    chosen = set(_rows(defaults, _DEFAULTS, lambda row: (row["cluster"], row["user"], row["defaultaccount"])))
    return Reading(tuple(_with_default(row, chosen) for row in found))


def _with_default(row: Association, chosen: set[tuple[str, str, str]]) -> Association:
    return row._replace(is_default=(row.cluster, row.user, row.account) in chosen) if row.user else row


def _some(rows: tuple[Form, ...]) -> tuple[Form, ...]:
    if not rows:
        raise FormatError("empty_inventory", "sacctmgr named nothing: an empty answer is no empty cluster.")
    return rows


def _rows(text: str, needed: str, build: Callable[[_Row], _Built]) -> Iterator[_Built]:
    header, *lines = text.splitlines() or [""]
    names = [_SHOWN_AS.get(name.lower(), name.lower()) for name in header.split("|")]
    if missing := [name for name in needed.split(",") if name.lower() not in names]:
        raise FormatError(
            "missing_columns", f"sacctmgr was not asked for: {', '.join(missing)}.", missing=missing,
            remedy="Ask with --parsable2 and with the header line.",
        )  # fmt: skip
    for line in filter(None, lines):
        values = line.split("|")
        if len(values) != len(names):
            raise FormatError("not_sacctmgr", f"{len(values)} values for {len(names)} columns: {line[:200]!r}.")
        try:
            yield build(dict(zip(names, values, strict=True)))
        except FieldError as error:
            raise FormatError("not_sacctmgr", f"{error.detail}: {line[:200]!r}.") from error


def _qos(row: _Row) -> Qos:
    user = _bound(row, "maxtrespu", "maxjobspu", "maxsubmitpu")
    account = _bound(row, "maxtrespa", "maxjobspa", "maxsubmitpa")
    return Qos(
        name=row["name"],
        priority=parse_count(row["priority"]),
        flags=read_names(row["flags"]),
        limits=_limits(row, user)._replace(account=account, job_min_tres=read_tres_limit(row["mintres"])),
    )


def _association(row: _Row) -> Association:
    return Association(
        cluster=row["cluster"],
        account=row["account"],
        parent=row.get("parentname"),
        user=row["user"],
        partition=row["partition"],
        is_default=None if row["user"] else False,
        default_qos=row["defaultqos"],
        qos=read_names(row["qos"]),
        limits=_limits(row, Bound(jobs=parse_count(row["maxjobs"]), submitted=parse_count(row["maxsubmit"]))),
    )


def _bound(row: _Row, tres: str, jobs: str, submitted: str) -> Bound:
    return Bound(read_tres_limit(row[tres]), parse_count(row[jobs]), parse_count(row[submitted]))


def _limits(row: _Row, user: Bound) -> Limits:
    return Limits(
        group=_bound(row, "grptres", "grpjobs", "grpsubmit"),
        user=user,
        group_tres_minutes=read_tres_limit(row["grptresmins"]),
        group_wall_s=parse_duration(row["grpwall"]),
        job_tres=read_tres_limit(row["maxtres"]),
        node_tres=read_tres_limit(row["maxtrespernode"]),
        job_tres_minutes=read_tres_limit(row["maxtresmins"]),
        job_wall_s=parse_duration(row["maxwall"]),
    )
