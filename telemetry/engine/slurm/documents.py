"""What Slurm's commands and slurmrestd answer as JSON: which dialect it is, whether it can be believed, its records.

A dialect is one version of Slurm's data parser, named in `meta`. Two families are known: up to 22.05 numbers and states
are plain, later they are `{"set", "infinite", "number"}` and lists. A version between or beyond the known ones is read
as the nearest of them, whole, and the reading says so; a value that then has another form than the dialect's is an
error, never a guess.

Sources: 22.05, 24.11 and 25.11 as recorded from the commands, 24.05 and 25.05 from slurmrestd.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from telemetry.engine.slurm.errors import FieldError, FormatError

Record: TypeAlias = Mapping[str, Any]
Built = TypeVar("Built")
_VERSION: Final = re.compile(r"v0\.0\.([0-9]{1,4})")
# Slurm's INFINITE and NO_VAL in 64 and 32 bits: "no limit" and "not set" in a plain number.
_UNSET: Final = frozenset(2**bits - less for bits in (64, 32) for less in (1, 2))
_NUMBER: Final = {"set", "infinite", "number"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """One version of the data parser, `v0.0.<version>`."""

    version: int

    @property
    def is_plain(self) -> bool:
        """Say whether numbers and states are plain values."""
        return self.version <= 38

    @property
    def tells_restarts(self) -> bool:
        """Say whether accounting tells how often a job was requeued."""
        return self.version >= 42

    @property
    def tells_group_limits(self) -> bool:
        """Say whether a QoS tells how many jobs and minutes its group may have."""
        return self.version >= 42

    def number(self, value: object) -> int | None:
        """Read a number that may be unset or infinite, both of which are None. Raises FieldError `bad_number`."""
        if self.is_plain:
            return plain_number(value)
        if not isinstance(value, dict) or not value.keys() >= _NUMBER:
            raise FieldError("bad_number", f"{value!r:.60} is not a number of v0.0.{self.version}")
        return plain_number(value["number"]) if value["set"] and not value["infinite"] else None

    def words(self, value: object) -> list[str]:
        """Read a state or flags: one word, or a list of them. Raises FieldError `bad_words`."""
        said = [value] if self.is_plain and isinstance(value, str) else value
        if not isinstance(said, list) or not all(isinstance(word, str) for word in said):
            raise FieldError("bad_words", f"{value!r:.60} is no list of words of v0.0.{self.version}")
        return said


KNOWN: Final = (Dialect(38), Dialect(41), Dialect(42), Dialect(43), Dialect(44))


def nearest_dialect(version: int) -> Dialect:
    """Return the dialect of a version, or the known one that is nearest to it."""
    return min(KNOWN, key=lambda known: abs(known.version - version))


class Envelope(NamedTuple):
    """What stands around the records: the dialect, Slurm's release, and what is to be said about the reading."""

    dialect: Dialect
    release: str
    warnings: tuple[str, ...]


class Document(NamedTuple):
    """The records of one answer, the key they stood under, and its envelope."""

    key: str
    records: list[object]
    envelope: Envelope


def read_document(text: str, *keys: str) -> Document:
    """Read a whole answer, whose records stand under the first of `keys` that is there.

    Errors: FormatError `json_is_text` (a command took `--json` and printed text), `not_json`, `no_records`, and those
    of `read_envelope`.
    """
    content = _load(text)
    key = next((key for key in keys if key in content), None)
    if key is None or not isinstance(content[key], list):
        raise FormatError("no_records", f"There is no list of {' or '.join(keys)} in it.")
    return Document(key, content[key], read_envelope(content, is_empty=not content[key]))


def read_member(text: str, key: str) -> tuple[object, Envelope]:
    """Read a whole answer of one record, which stands under `key`. Errors: as `read_document`, `no_record`."""
    content = _load(text)
    envelope = read_envelope(content, is_empty=not content.get(key))
    if not isinstance(content.get(key), dict):
        raise FormatError("no_record", f"There is no {key} in it.")
    return content[key], envelope


def _load(text: str) -> Record:
    refuse_text(text[:200])
    try:
        content: Record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError("not_json", f"This is not whole JSON: {error}.") from error
    return content


def refuse_text(beginning: str) -> None:
    """Raise FormatError `json_is_text` or `empty_file` where something does not begin as a JSON object."""
    if not beginning.strip():
        raise FormatError("empty_file", "There is nothing in this answer.")
    if not beginning.lstrip("\ufeff \t\r\n").startswith("{"):
        raise FormatError(
            "json_is_text", f"This is text and no JSON: {beginning.strip()[:100]!r}.",
            remedy="This version of the command does not print JSON: read its text.",
        )  # fmt: skip


def read_envelope(content: Record, *, is_empty: bool) -> Envelope:
    """Judge an answer by its `meta`, `errors` and `warnings`.

    Errors: FormatError `slurm_error` where it names errors, or warnings and no record: half an answer is none, and an
    empty one with a warning is no empty cluster; `no_meta` where it does not say which version wrote it.
    """
    errors, warnings = _said(content.get("errors")), _said(content.get("warnings"))
    if errors or (is_empty and warnings):
        raise FormatError("slurm_error", f"Slurm answered with: {'; '.join(errors or warnings)[:200]}.")
    meta = content.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    plugin, slurm = meta.get("plugin"), meta.get("slurm", meta.get("Slurm"))
    release = str(slurm.get("release", "")) if isinstance(slurm, dict) else ""
    written = str(plugin.get("data_parser") or plugin.get("type", "")) if isinstance(plugin, dict) else ""
    match = _VERSION.search(written)
    if match is None:
        raise FormatError("no_meta", "It does not say which version of Slurm's data parser wrote it.")
    version = int(match[1])
    dialect = nearest_dialect(version)
    if version != dialect.version:
        warnings.append(f"v0.0.{version} (Slurm {release or 'unknown'}) is read as v0.0.{dialect.version}")
    return Envelope(dialect, release, tuple(warnings))


def _said(messages: object) -> list[str]:
    """Return what a list of errors or warnings says; anything else that is not empty says itself."""
    if not isinstance(messages, list):
        return [str(messages)] if messages else []
    said = [message if isinstance(message, dict) else {"description": str(message)} for message in messages]
    return [" ".join(str(one[key]) for key in ("error", "description") if one.get(key)) or str(one) for one in said]


def plain_number(value: object) -> int | None:
    """Read a plain number; None where it stands for "not set" or "no limit". Raises FieldError `bad_number`."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise FieldError("bad_number", f"{value!r:.60} is not a plain number")
    return None if value in _UNSET else value


def plain_text(value: object) -> str:
    """Read a text that may be missing. Raises FieldError `bad_text`."""
    if value is None or isinstance(value, str):
        return value or ""
    raise FieldError("bad_text", f"{value!r:.60} is not a text")


def names(value: object) -> tuple[str, ...]:
    """Read a list of names, sorted. Raises FieldError `bad_words`."""
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise FieldError("bad_words", f"{value!r:.60} is no list of names")
    return tuple(sorted(value))


def at(record: object, path: str) -> Any:
    """Return what stands at `a.b.c` in a record. Raises FieldError `missing_field` where there is no such place."""
    for name in path.split("."):
        if not isinstance(record, dict) or name not in record:
            raise FieldError("missing_field", f"There is no {path} in it")
        record = record[name]
    return record


def tres_amounts(value: object) -> dict[str, int]:
    """Read a list of trackable resources by name (`gres/gpu:a100`), sizes in MiB; those without an amount are left out.

    Raises FieldError `bad_tres`.
    """
    if not isinstance(value, list):
        raise FieldError("bad_tres", f"{value!r:.60} is no list of trackable resources")
    found = {}
    for item in value:
        kind, name, count = plain_text(at(item, "type")), plain_text(at(item, "name")), plain_number(at(item, "count"))
        if count is not None:
            found[f"{kind}/{name}" if name else kind] = count
    return found


def build_all(document: Document, build: Callable[[Record, Dialect], Built]) -> tuple[Built, ...]:
    """Build every record of an answer; one odd record spoils it. Errors: FormatError `odd_record`."""
    rows = []
    for number, record in enumerate(document.records, 1):
        try:
            if not isinstance(record, dict):
                raise FieldError("bad_record", f"{record!r:.60} is no record")
            rows.append(build(record, document.envelope.dialect))
        except FieldError as error:
            raise FormatError("odd_record", f"Record {number}: {error.detail}.") from error
    return tuple(rows)
