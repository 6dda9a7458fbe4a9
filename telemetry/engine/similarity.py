"""Which jobs are alike across users: keys that are equal where jobs are, from the same job to the same application.

Source: the measurement of cross-user job similarity (Table II of the paper): the same command, submit line, script
name, normalised template, application, and, apart from these, the same working directory. Keys are 64 bits of a
hash, so that the whole table is one grouped query; 0 says that there is nothing to compare.

What is read is the submit line as accounting keeps it (sbatch(1), srun(1), salloc(1)); what stands inside a batch
script accounting does not know.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

LAUNCHERS: Final = frozenset({"sbatch", "srun", "salloc"})
# Options of sbatch(1) and srun(1) that take no value, or only one that is written with "=".
BARE: Final = frozenset(
    str.split(
        "-E -H -h -I -K -k -l -O -Q -s -u -v -V -W -X -Z --bell --contiguous --disable-status --exact --exclusive "
        "--get-user-env --help --nice --no-allocate --no-bell --no-shell --resv-ports --usage --whole --x11 "
        "--hold --ignore-pbs --immediate --kill-on-bad-exit --kill-on-invalid-dep --label --multi-prog --no-kill "
        "--no-requeue --overcommit --oversubscribe --overlap --parsable --preserve-env --propagate --pty --quiet "
        "--quit-on-interrupt --reboot --requeue --spread-job --test-only --unbuffered --use-min-nodes --verbose "
        "--version --wait"
    )
)
# Programs that only run another one, and those that only start a step of the same job.
_WRAPPERS: Final = frozenset(
    str.split(
        "env time nice nohup sudo bash sh zsh timeout numactl taskset stdbuf mpirun mpiexec orterun srun "
        "apptainer singularity uv conda micromamba poetry run"
    )
)
_CONTAINERS: Final = frozenset({"apptainer", "singularity"})
_CONTAINER_VERBS: Final = frozenset({"exec", "run", "shell"})
_WITH_VALUE: Final = frozenset({"-B", "--bind", "-H", "--home", "-W", "--workdir", "--pwd", "--env", "--overlay"})
_AMOUNT: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?[smhd]?")  # of `timeout 10m`, `nice 5`
_INTERPRETERS: Final = re.compile(r"(?:python|perl|ruby|julia|Rscript|node|java)[0-9.]*")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
HEXADECIMAL: Final = re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b", re.IGNORECASE)
NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?", re.IGNORECASE)
PATH: Final = re.compile(r"(?:~|\.{1,2})?/(?:[^\s/'\"=:,;|&<>()]+/)*([^\s/'\"=:,;|&<>()]*)")
# A run of plain characters, quoted parts and escapes; a quote that is never closed is a plain character.
_WORD: Final = re.compile(r"""(?:[^\s'"\\]+|'[^']*'|"(?:[^"\\]|\\.)*"|\\.|['"\\])+""", re.DOTALL)
_QUOTED: Final = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
MAX_TEXT: Final = 4096  # of a longer text the beginning decides


class Keys(NamedTuple):
    """Six keys of a job, from the strictest to the loosest; `work_dir` stands apart. 0: nothing to compare."""

    command: int
    submit_line: int
    script: int
    template: int
    application: int
    work_dir: int


class Parts(NamedTuple):
    """A submit line taken apart: what is run, with its arguments, and the program or script that is named first."""

    command: str
    program: str


NOTHING: Final = Parts("", "")


def keys_of(submit_line: str, work_dir: str) -> Keys:
    """Compute the keys of one job. Any text has some."""
    line = " ".join(submit_line[:MAX_TEXT].split())
    parts = take_apart(line)
    return Keys(
        command=_key("command", parts.command),
        submit_line=_key("submit_line", line),
        script=_key("script", base_of(parts.program)),
        template=_key("template", template_of(parts.command)),
        application=_key("application", application_of(parts.command)),
        work_dir=_key("work_dir", work_dir.rstrip("/")),
    )


@lru_cache(maxsize=4096)  # submissions repeat
def take_apart(submit_line: str) -> Parts:
    """Separate what is run from the options it was submitted with."""
    words = _words(submit_line)
    if not words or base_of(words[0]) not in LAUNCHERS:
        return Parts(" ".join(words), words[0]) if words else NOTHING
    rest = iter(words[1:])
    for word in rest:
        if word.startswith("--wrap"):
            # Accounting keeps the words without the quotes that held them together: all that follows is the command.
            wrapped = " ".join(filter(None, (word.partition("=")[2], *rest)))
            words = _words(wrapped)
            return Parts(" ".join(wrapped.split()), words[0] if words else "")
        if not word.startswith("-") or word == "-":
            return Parts(" ".join((word, *rest)), word)
        if _takes_next(word):
            next(rest, "")
    return NOTHING


def _takes_next(option: str) -> bool:
    """Say whether an option's value is the next word: `-p gpu` and `--partition gpu`, not `-pgpu`, `--x=y`, `-W`."""
    if option.startswith("--"):
        return "=" not in option and option not in BARE
    return len(option) == 2 and option not in BARE


def template_of(command: str) -> str:
    """Return a command with what varies from run to run taken out: numbers, hashes, and the folders of paths."""
    text = PATH.sub(r"\1", command)
    return NUMBER.sub("#", HEXADECIMAL.sub("#", text))


@lru_cache(maxsize=4096)
def application_of(command: str) -> str:
    """Name the program that a command runs, without its version: "gmx_mpi", "train.py" of `python train.py`.

    Wrappers are passed over with their options, the container's image too; of an interpreter, the script or module
    counts.
    """
    return _application(iter(_words(command)))


def application_by_head(head: str) -> tuple[str, bool]:
    """Do the same for the first words of a command without quotes; True says that more words could change it."""
    words = iter(head.split())
    return _application(words), next(words, None) is None


def _application(words: Iterator[str]) -> str:
    wrapper = ""
    for word in words:
        name = base_of(word)
        if word.startswith("-"):
            if wrapper and _takes_next(word):
                next(words, "")
        elif name in _CONTAINER_VERBS and wrapper in _CONTAINERS:
            _skip_image(words)
            wrapper = ""
        elif name in _WRAPPERS:
            wrapper = name
        elif name and not _ASSIGNMENT.match(word) and not _AMOUNT.fullmatch(name):
            return (_script_of(words) or name) if _INTERPRETERS.fullmatch(name) else NUMBER.sub("#", name)
    return ""


def _skip_image(words: Iterator[str]) -> None:
    """Pass over the options and the image of `apptainer exec`."""
    for word in words:
        if not word.startswith("-"):
            return
        if word in _WITH_VALUE:
            next(words, "")


def _script_of(words: Iterator[str]) -> str:
    """Return the script or module among the words behind an interpreter; "" where code stands on the line itself."""
    for word in words:
        if word in ("-c", "-e"):
            return ""
        if word == "-m":
            return NUMBER.sub("#", next(words, ""))
        if not word.startswith("-"):
            return NUMBER.sub("#", base_of(word))
    return ""


def _words(text: str) -> list[str]:
    """Cut a text into words as a shell does; `shlex` takes twenty times as long, and refuses an open quote."""
    if "'" in text or '"' in text or "\\" in text:
        return [_QUOTED.sub(r"\1\2\3", word) for word in _WORD.findall(text)]
    return text.split()


def base_of(path: str) -> str:
    """Return what stands behind the last slash."""
    return path.rsplit("/", 1)[-1]


@lru_cache(maxsize=16384)
def _key(kind: str, text: str) -> int:
    """Hash a text into a signed 64-bit number, a different one for each kind; 0 for no text."""
    if not text:
        return 0
    digest = blake2b(f"{kind}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
