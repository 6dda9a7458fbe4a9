"""Find lessons that fit an error: exact signature first, then likeness with a rare word in common.

Likeness alone accepts too much: generic words make unrelated errors alike. So a match by likeness also
needs one rare word that both texts share, and below the threshold there is no answer.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from memory.engine.signature import Signature, sign

THRESHOLD = 0.4
MAX_MATCHES = 3  # more retrieved items made agents do worse, not better
RARE_SHARE = 0.01
RARE_FLOOR = 2  # in a small collection a word of two different errors is still rare
_WORD = re.compile(r"[a-z_][a-z0-9_+.]{2,}")
_PLACEHOLDER = re.compile(r"<[a-z]+>")
_COMMON = frozenset(
    """error errors failed failure fatal the and for with from was not has are can cannot could this that
    your you more than file line job task node nodes step process signal exit code status message warning
    runtimeerror exception invalid unable unknown requested available system call user detected following
    please program command set use used using number""".split()  # noqa: SIM905  # a list of words reads as words
)


class How(Enum):
    """How a lesson was matched."""

    EXACT = "exact"
    SIMILAR = "similar"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lesson's key and the error text it was learnt from, with its signature if that was kept."""

    key: str
    text: str
    signature: Signature | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A lesson that fits, with the score from 0 to 1 and the reason."""

    key: str
    score: float
    how: How
    why: str


@dataclass(frozen=True, slots=True)
class _Entry:
    key: str
    signature: Signature
    trigrams: frozenset[str]
    words: frozenset[str]


def trigrams_of(text: str) -> frozenset[str]:
    """Give the trigrams of the words of a text, each padded as PostgreSQL's pg_trgm pads it."""
    words = re.findall(r"[a-z0-9_]+", _PLACEHOLDER.sub(" ", text.lower()))
    return frozenset(f"  {word} "[at : at + 3] for word in words for at in range(len(word) + 1))


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """Give the share of trigrams in common, 0 to 1."""
    joint = len(one & other)
    return joint / (len(one) + len(other) - joint) if joint else 0.0


def words_of(text: str) -> frozenset[str]:
    """Give the words of a text that may tell one error from another."""
    words = _WORD.findall(_PLACEHOLDER.sub(" ", text.lower()))
    return frozenset(word.rstrip(".") for word in words) - _COMMON


@dataclass(slots=True)
class LessonIndex:
    """Candidate lessons prepared for look-ups; build it once per scope and collection."""

    entries: list[_Entry] = field(default_factory=list)
    frequency: Counter[str] = field(default_factory=Counter)  # different kernels a word stands in
    kernels: int = 0

    @classmethod
    def build(cls, candidates: Iterable[Candidate]) -> "LessonIndex":
        """Prepare candidates; the texts of equal errors count once when rare words are told."""
        index = cls()
        words_by_kernel: dict[str, set[str]] = {}
        for candidate in candidates:
            signature = candidate.signature or sign(candidate.text)
            entry = _Entry(candidate.key, signature, trigrams_of(signature.kernel), words_of(signature.normalised))
            index.entries.append(entry)
            words_by_kernel.setdefault(signature.exact, set()).update(entry.words)
        for words in words_by_kernel.values():
            index.frequency.update(words)
        index.kernels = len(words_by_kernel)
        return index

    def is_rare(self, word: str) -> bool:
        """Say whether a word stands in few of the different errors known."""
        return self.frequency[word] <= max(RARE_FLOOR, math.ceil(self.kernels * RARE_SHARE))

    def find(self, text: str, *, limit: int = MAX_MATCHES, threshold: float = THRESHOLD) -> list[Match]:
        """Find at most ``limit`` lessons for an error text, best first; none means unknown."""
        asked = sign(text)
        grams, words = trigrams_of(asked.kernel), words_of(asked.normalised)
        matches = []
        for entry in self.entries:
            if asked.kernel and entry.signature.exact == asked.exact:
                matches.append(Match(entry.key, 1.0, How.EXACT, "The same error, word for word."))
                continue
            score = similarity(grams, entry.trigrams)
            rare = sorted(word for word in words & entry.words if self.is_rare(word))
            if score >= threshold and rare:
                why = f"{score:.0%} alike; both mention {', '.join(rare[:3])}."
                matches.append(Match(entry.key, score, How.SIMILAR, why))
        return sorted(matches, key=lambda match: (-match.score, match.key))[:limit]


def find_lessons(text: str, candidates: Sequence[Candidate], *, limit: int = MAX_MATCHES) -> list[Match]:
    """Find lessons among a few candidates without keeping an index."""
    return LessonIndex.build(candidates).find(text, limit=limit)
