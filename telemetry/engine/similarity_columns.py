"""The keys of `similarity` for many jobs at once, in columns: equal where those are equal, though other numbers.

Submit lines of the usual form (plain ASCII without quotes, options that every site knows) are taken apart by patterns
whose alternatives exclude each other; all other lines one by one. A property test holds the groups to `keys_of`.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

import polars as pl

from telemetry.engine.similarity import (
    BARE,
    LAUNCHERS,
    MAX_TEXT,
    NUMBER,
    PATH,
    Keys,
    application_by_head,
    application_of,
    base_of,
    take_apart,
    template_of,
)

KINDS: Final = Keys._fields
_ASCII: Final = "^[ -~]*$"  # patterns over ASCII mean the same to both engines
_USUAL: Final = r"^[ !#-&(-\[\]-~]*$"  # neither quotes nor backslashes
_MAYBE_HEXADECIMAL: Final = "(?i)[0-9a-f]{8}"  # the columns' engine cannot look ahead for a digit
_NUMBER_OF_COLUMNS: Final = NUMBER.pattern.replace("(?:e", "(?:[eE]")
_HEAD_WORDS: Final = 3
_HEAD: Final = f"^((?:[^ ]+ ){{0,{_HEAD_WORDS - 1}}}[^ ]+)"

# Long options of sbatch(1) whose value is the next word, where no "=" joins it; rarer ones are left to single lines.
_VALUED: Final = (
    "account array begin chdir clusters comment constraint cpus-per-task dependency error exclude export gpus "
    "gpus-per-node gpus-per-task gres input job-name licenses mail-type mail-user mem mem-per-cpu mem-per-gpu nodelist "
    "nodes ntasks ntasks-per-node output partition qos reservation signal time"
).replace(" ", "|")
_BARE_LONG: Final = "|".join(sorted(option[2:] for option in BARE if option.startswith("--")))
_BARE_SHORT: Final = "".join(sorted(option[1] for option in BARE if not option.startswith("--")))
_OPTION: Final = (
    f"(?: --(?:{_BARE_LONG})| --[^ =]+=[^ ]*| -[{_BARE_SHORT}]| -[^ -][^ ]+| -[^ {_BARE_SHORT}-] [^ ]+"
    f"| --(?:{_VALUED}) [^ ]+)"
)
_LAUNCHED: Final = f"^(?:[^ ]*/)?(?:{'|'.join(sorted(LAUNCHERS))})"
_WRAP: Final = " --wrap"
_WRAPPED: Final = f"{_LAUNCHED}{_OPTION}*?{_WRAP}"
_SCRIPTED: Final = f"{_LAUNCHED}{_OPTION}*(?: ([^ -].*|-|- .*))?$"

_Make: TypeAlias = Callable[[str], tuple[str, ...]]


def key_columns(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return a column of 64 bits for each field of `Keys`, of the jobs' `submit_line` and `work_dir`; 0 for no text."""
    lines = jobs["submit_line"].unique()
    apart = _applications(_templates(_taken_apart(lines)))
    keys = apart.select(lines.alias("text"), *(_hashed(kind, pl.col(kind)) for kind in KINDS if kind != "work_dir"))
    folder = pl.col("work_dir").str.strip_chars_end("/")
    texts = jobs.select(pl.col("submit_line").alias("text"), _hashed("work_dir", folder))
    return texts.join(keys, on="text", how="left", maintain_order="left").select(KINDS)


def _taken_apart(lines: pl.Series) -> pl.DataFrame:
    """Return the line itself without spare spaces, its command and its script, and whether it is of the usual form."""
    text = pl.col("text")
    wraps = text.str.count_matches(_WRAP, literal=True).alias("wraps")
    frame = lines.alias("text").to_frame()
    frame = frame.with_columns(text.alias("submit_line"), _is_usual(text).alias("usual"), wraps)
    # What is not asked of a pattern costs nothing: a capture takes ten times as long as a match.
    scripted = pl.when(pl.col("usual") & (pl.col("wraps") == 0)).then(text)
    is_scripted = scripted.str.contains(_SCRIPTED)
    command = (
        pl.when((pl.col("wraps") == 1) & text.str.contains(_WRAPPED)).then(_wrapped(text))
        .when(is_scripted).then(pl.when(is_scripted).then(text).str.extract(_SCRIPTED, 1).fill_null(""))
        .when(~text.str.contains(f"{_LAUNCHED}(?: |$)")).then(text)
    )  # fmt: skip
    frame = frame.with_columns(pl.when("usual").then(command).alias("command"))
    script = pl.col("command").str.splitn(" ", 2).struct[0].str.split("/").list.last()
    frame = frame.with_columns(script.alias("script"), pl.col("command").is_not_null().alias("usual")).drop("wraps")
    return _with_single(frame, "text", ("submit_line", "command", "script"), _take_apart)


def _is_usual(text: pl.Expr) -> pl.Expr:
    spare = text.str.contains("  ", literal=True) | text.str.starts_with(" ") | text.str.ends_with(" ")
    return text.str.contains(_USUAL) & ~spare & (text.str.len_bytes() <= MAX_TEXT)


def _wrapped(text: pl.Expr) -> pl.Expr:
    """Return what stands behind the only `--wrap` of a line, joined by "=" or a space."""
    behind = text.str.slice(text.str.find(_WRAP, literal=True) + 1).str.splitn(" ", 2)
    joined = behind.struct[0].str.splitn("=", 2).struct[1].fill_null("")
    return pl.concat_str(joined, behind.struct[1].fill_null(""), separator=" ").str.strip_chars(" ")


def _take_apart(text: str) -> tuple[str, str, str]:
    line = " ".join(text[:MAX_TEXT].split())
    command, program = take_apart.__wrapped__(line)  # each line comes once
    return line, command, base_of(program)


def _templates(frame: pl.DataFrame) -> pl.DataFrame:
    """Add what `template_of` says."""
    text = pl.col("command")
    without_paths = text.str.replace_all(PATH.pattern, "${1}")
    even = text.str.contains(_ASCII) & ~without_paths.str.contains(_MAYBE_HEXADECIMAL)
    template = without_paths.str.replace_all(_NUMBER_OF_COLUMNS, "#")
    frame = frame.rename({"usual": "plain"}).with_columns(template.alias("template"), even.alias("usual"))
    single = _with_single(frame, "command", ("template",), lambda command: (template_of(command),))
    return single.with_columns(pl.col("plain").alias("usual")).drop("plain")


def _applications(frame: pl.DataFrame) -> pl.DataFrame:
    """Add what `application_of` says: of commands that begin alike, once, unless what follows matters too."""
    heads = frame.select("command", "usual", pl.col("command").str.extract(_HEAD, 1).fill_null("").alias("head"))
    distinct = heads.filter("usual").select("head").unique()
    told = [application_by_head(head) for head in distinct["head"].to_list()]
    table = distinct.with_columns(
        pl.Series("application", [name for name, _ in told], dtype=pl.String),
        pl.Series("open", [is_open for _, is_open in told], dtype=pl.Boolean),
    )
    found = heads.join(table, on="head", how="left", maintain_order="left")
    sure = pl.col("usual") & (~pl.col("open") | (pl.col("head") == pl.col("command")))
    frame = frame.with_columns(found["application"].fill_null(""), found.select(sure.alias("usual"))["usual"])
    return _with_single(frame, "command", ("application",), lambda command: (application_of.__wrapped__(command),))


def _with_single(frame: pl.DataFrame, of: str, made: tuple[str, ...], make: _Make) -> pl.DataFrame:
    """Make some columns anew, one by one, of those rows that are not of the usual form."""
    odd = frame.filter(~pl.col("usual"))
    if odd.is_empty():
        return frame
    texts = odd.select(of).unique()
    schema = {of: pl.String} | {f"{name} alone": pl.String for name in made}
    alone = pl.DataFrame([(text, *make(text)) for text in texts[of].to_list()], schema=schema, orient="row")
    joined = frame.join(alone, on=of, how="left", maintain_order="left")
    usual = pl.col("usual")
    return joined.with_columns(
        pl.when(usual).then(pl.col(name)).otherwise(pl.col(f"{name} alone")).alias(name) for name in made
    ).select(frame.columns)


def _hashed(name: str, text: pl.Expr) -> pl.Expr:
    return pl.when(text == "").then(pl.lit(0, dtype=pl.UInt64)).otherwise(text.hash()).alias(name)
