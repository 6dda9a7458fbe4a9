"""The keys of `similarity` for many jobs at once, in columns: equal where those are equal, though other numbers.

Each distinct submit line is taken apart once a frame; what the parts are hashed to, and the templates of commands, is
columns' work. A property test holds the groups to those of `keys_of`.
"""

from collections.abc import Iterable
from typing import Final

import polars as pl

from telemetry.engine.similarity import (
    MAX_TEXT,
    NUMBER,
    PATH,
    Keys,
    application_of,
    base_of,
    take_apart,
    template_of,
)

KINDS: Final = Keys._fields
_PLAIN: Final = "^[ -~]*$"  # patterns over ASCII mean the same to both engines
_MAYBE_HEXADECIMAL: Final = "(?i)[0-9a-f]{8}"  # the columns' engine cannot look ahead for a digit
_NUMBER_OF_COLUMNS: Final = NUMBER.pattern.replace("(?:e", "(?:[eE]")


def key_columns(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return a column of 64 bits for each field of `Keys`, of the jobs' `submit_line` and `work_dir`; 0 for no text."""
    lines = jobs["submit_line"].unique()
    table = _texts(lines.to_list())
    table = table.with_columns(_templates(table["command"]).alias("template"))
    keys = table.select(lines.alias("text"), *(_hashed(kind, pl.col(kind)) for kind in KINDS if kind != "work_dir"))
    folder = pl.col("work_dir").str.strip_chars_end("/")
    texts = jobs.select(pl.col("submit_line").alias("text"), _hashed("work_dir", folder))
    return texts.join(keys, on="text", how="left", maintain_order="left").select(KINDS)


def _texts(lines: Iterable[str]) -> pl.DataFrame:
    """Return what is compared of each submit line, the template excepted."""
    found: dict[str, list[str]] = {"command": [], "submit_line": [], "script": [], "application": []}
    commands, submits, scripts, applications = found.values()
    apart, application = take_apart.__wrapped__, application_of.__wrapped__  # each line comes once
    for text in lines:
        line = " ".join(text[:MAX_TEXT].split())
        command, program = apart(line)
        submits.append(line)
        commands.append(command)
        scripts.append(base_of(program))
        applications.append(application(command))
    return pl.DataFrame(found, schema=dict.fromkeys(found, pl.String))


def _templates(commands: pl.Series) -> pl.Series:
    """Do what `template_of` does; what is not plain ASCII, or may hold a hexadecimal number, one by one."""
    text = pl.col("command")
    without_paths = text.str.replace_all(PATH.pattern, "${1}")
    frame = commands.alias("command").to_frame().with_columns(
        without_paths.str.replace_all(_NUMBER_OF_COLUMNS, "#").alias("template"),
        (~text.str.contains(_PLAIN) | without_paths.str.contains(_MAYBE_HEXADECIMAL)).alias("odd"),
    )  # fmt: skip
    if not frame["odd"].any():
        return frame["template"]
    odd = frame.filter("odd").select("command").unique()
    odd = odd.with_columns(
        pl.Series("exact", [template_of(text) for text in odd["command"].to_list()], dtype=pl.String)
    )
    joined = frame.join(odd, on="command", how="left", maintain_order="left")
    return joined.select(pl.coalesce("exact", "template"))["exact"]


def _hashed(name: str, text: pl.Expr) -> pl.Expr:
    return pl.when(text == "").then(pl.lit(0, dtype=pl.UInt64)).otherwise(text.hash()).alias(name)
