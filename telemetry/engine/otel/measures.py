"""What is counted of a harness: a closed list, so that nothing a record held can become a measure. All are integers."""

from collections.abc import Mapping
from typing import Final

SESSIONS: Final = "sessions"
COST: Final = "cost"  # millionths of a US dollar, as the harness estimates it
REQUESTS: Final = "requests"
ERRORS: Final = "errors"
ACTIVE: Final = "active"  # milliseconds
TOKENS: Final = "tokens:"
# Of decisions: one of these, and a tool of `harnesses.toml`, `mcp` or `other`.
ACCEPTED: Final = "accepted:"  # by a person
REJECTED: Final = "rejected:"
AUTOMATIC: Final = "automatic:"  # by settings or a hook, either way
MCP: Final = "mcp"
OTHER: Final = "other"

TOKEN_KINDS: Final[Mapping[str, str]] = {
    "input": "Input", "output": "Output", "cache_read": "Read from cache", "cache_write": "Written to cache",
    "reasoning": "Reasoning", "tool": "Of tools",
}  # fmt: skip
PLAIN: Final = frozenset(
    {SESSIONS, COST, REQUESTS, ERRORS, ACTIVE, "lines_added", "lines_removed", "commits", "pull_requests"}
    | {TOKENS + kind for kind in TOKEN_KINDS}
)
# Told in dollars and seconds, kept as integers: their sum does not depend on the order they come in.
_SCALES: Final = {COST: 1_000_000, ACTIVE: 1000}
LARGEST: Final = 2**53 - 1  # more is no count of anything


def in_units(measure: str, value: float) -> int:
    """Return a value as it is kept."""
    return round(value * _SCALES.get(measure, 1))


def total(counts: Mapping[str, int], prefix: str) -> int:
    """Add up the measures of one family, as all that was accepted."""
    return sum(number for measure, number in counts.items() if measure.startswith(prefix))
