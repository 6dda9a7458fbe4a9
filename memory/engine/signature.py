"""Bring error texts into a form in which the same failure reads the same.

What varies by run is replaced (hosts, paths, numbers); what decides the cause is kept (errno, exit codes,
signals, Slurm states); versions such as ``GLIBCXX_3.4.29`` are taken out and kept beside as parameters.
Signatures made by different values of ``VERSION`` must not be compared: recompute them.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass

VERSION = 1
TEXT_LIMIT = 64_000  # characters looked at; an error worth a lesson stands in the last of them

_Replacement = str | Callable[[re.Match[str]], str]
_KEPT_NUMBER = (
    r"(?:errno|exit(?:ed)?(?: with)?(?: (?:code|status))?|signal|code|error|status)\b"
    r"[\s:=('\[]{0,4}\d+(?::\d+)?"
)
# Absolute directories, and relative ones of two levels or more: gcc/12.3.0 is a module, not a path.
_DIRECTORIES = (
    r"(?:(?<=^)|(?<=[\s\"'(=\[:]))(?:(?:~|\.{1,2})?/|[\w.+-]+/(?=[^\s\"'():,;\[\]<>/]+/))"
    r"(?:[^\s\"'():,;\[\]<>/]+/)*(?=[^\s/])"
)
_STEPS: tuple[tuple[re.Pattern[str], _Replacement], ...] = tuple(
    (re.compile(pattern, re.I if flags else 0), replacement)
    for pattern, flags, replacement in (
        (r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)", 0, ""),
        (r"\b[a-z][a-z0-9+.-]{1,15}://[^\s\"'<>)]+", 1, "<url>"),
        (r"\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+\b", 0, "<mail>"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?", 0, "<time>"),
        (r"\b[EWIF]\d{4} \d\d:\d\d:\d\d(?:\.\d+)?(?: +\d+)?", 0, "<time>"),
        (r"\b(?:\d+-)?\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b", 0, "<time>"),
        (r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", 1, "<uuid>"),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", 0, "<address>"),
        (r"\b0x[0-9a-f]+\b", 1, "<address>"),
        (_DIRECTORIES, 0, ""),
        (r"\[?\brank\s?\d+\]?:?", 1, "<rank>"),
        (r"\bpid[ =:]+(?:\d+|\.\.\.)", 1, "pid <n>"),
        (r"(?<=\bon )(?:host )?[A-Za-z][\w.-]*(?:\d|\])[\w.-]*(?:\[[\d,-]+\])?", 1, "<node>"),
        (r"\b[A-Za-z][\w-]{0,62}\[\d[\d,-]*\]", 0, "<node>"),
        (r"^\[?[A-Za-z][\w.-]*:\d+(?::\d+)*\]", 0, "<node>"),
        (r"(?<![A-Za-z0-9])(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{32}(?![A-Za-z0-9])", 0, "<hash>"),
        (r"\b(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,64}\b", 0, "<hash>"),
        (r"\b\d+(?:\.\d+)? ?(?:[KMGTP]i?B|bytes|[kMGT]\b)", 0, "<size>"),
        (
            r"\b\d+(?:\.\d+)? ?(?:milliseconds?|ms|seconds?|secs?|s|minutes?|min|hours?|hrs?|days?)\b",
            1,
            "<duration>",
        ),
    )
)
_PARAMETER = re.compile(
    r"\b(?P<name>GLIBCXX|GLIBC|CXXABI|sm|compute|CUDA|cuda|cudnn|NCCL version|python)[_ -]?"
    r"(?P<value>\d[\w.]*\d|\d)"
)
_NUMBER = re.compile(rf"(?P<keep>{_KEPT_NUMBER})|(?<![A-Za-z])\d+(?:\.\d+)*|(?<=[A-Za-z_-])\d{{2,}}", re.I)
_NAMED_ERROR = re.compile(
    r"(?:Error|Exception)\b(?=:)|oom.kill|Out Of Memory|DUE TO TIME LIMIT|\berror: (?!\*)"
    r"|not found \(required|following error:|CUDNN_STATUS|Illegal instruction|caught collective"
)
_ERROR_WORD = re.compile(
    r"\b(?:error|fail(?:ed|ure)?|fatal|abort(?:ed)?|killed|cannot|unable|denied|invalid|unknown|not found"
    r"|no such|timed? ?out|exceeded|insufficient|not enough|segmentation|core dumped|terminated)\b",
    re.I,
)
_NOISE = re.compile(
    r"^\s*(?:File \"|at |from |Traceback|During handling|The above exception|warning|note:|info|Try[: ])"
    r"|^\s*[-=*#~]{4}"
    r"|^\s*$|UserWarning",
    re.I,
)
_PREFIX = re.compile(
    r"^(?:\W*<(?:rank|time|node|address|n)>[\]:)]*|\[\w? ?\]|[\w.-]+(?:\.(?:cpp|cu|c|h|py)):<n>[\])]*:?"
    r"|(?:slurmstepd|srun|sbatch|salloc|mpirun|python\S*|==>|error|fatal|exception|[\w.]*(?:Error|Exception))"
    r"[\s:]+|[\s*:\]>-]+)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Signature:
    """An error text in its comparable forms.

    ``exact`` is 12 hexadecimal digits; equal values mean the same failure, different ones mean nothing.
    """

    exact: str
    kernel: str
    line: str
    normalised: str
    parameters: tuple[str, ...]
    version: int = VERSION


def _replace_numbers(text: str) -> str:
    return _NUMBER.sub(lambda match: match["keep"] or "<n>", text)


def normalise(text: str) -> str:
    """Replace what varies by run, line by line; applying it twice changes nothing more."""
    lines = []
    for line in text[-TEXT_LIMIT:].splitlines():
        for pattern, replacement in _STEPS:
            line = pattern.sub(replacement, line)
        line = _PARAMETER.sub(lambda match: f"{match['name']}_<v>", line)
        lines.append(" ".join(_replace_numbers(line).split()))
    return "\n".join(line for line in lines if line)


def extract_parameters(text: str) -> tuple[str, ...]:
    """List, sorted, the versions that decide the cause, such as ``GLIBCXX_3.4.29`` or ``sm_120``."""
    found = {f"{match['name']}_{match['value']}" for match in _PARAMETER.finditer(text[-TEXT_LIMIT:])}
    return tuple(sorted(found))


def _strength(line: str) -> int:
    named = 3 if _NAMED_ERROR.search(line) else 0
    return named + (1 if _ERROR_WORD.search(line) else 0) - (2 if _NOISE.search(line) else 0)


def strongest_line(text: str) -> str:
    """Choose the line that says most about what failed; of equal lines the last."""
    lines = [line for line in text[-TEXT_LIMIT:].splitlines() if line.strip()]
    if not lines:
        return ""
    return max(enumerate(lines), key=lambda item: (_strength(item[1]), item[0]))[1].strip()


def kernel_of(line: str) -> str:
    """Cut from a normalised line what varies by reporter: prefixes, parameter lists, plural forms."""
    kernel = line
    while True:
        shorter = _PREFIX.sub("", kernel, count=1)
        if shorter == kernel or not shorter:
            break
        kernel = shorter
    kernel = re.sub(r"\((?:required by|[^()]*[<\"'=])[^()]*\)?", "", kernel)
    kernel = re.sub(r"\(e?s\)", "", kernel)
    kernel = re.sub(r"[\"'`‘’“”]+", "", kernel)
    return " ".join(kernel.lower().split()).rstrip(" .:;,") or " ".join(line.lower().split())


def sign(text: str) -> Signature:
    """Make the signature of an error text."""
    line = strongest_line(text)
    kernel = kernel_of(normalise(line))
    exact = hashlib.sha256(kernel.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return Signature(exact, kernel, line, normalise(text), extract_parameters(text))


def exact_signature(text: str) -> str:
    """Give the 12 hexadecimal digits by which equal failures are found at once."""
    return sign(text).exact
