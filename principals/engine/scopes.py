"""What a token may be allowed to do, with words for it."""

from collections.abc import Iterable
from dataclasses import dataclass

from principals.engine.tokens import TokenKind


@dataclass(frozen=True, slots=True)
class Scope:
    """One permission a token can carry."""

    name: str
    words: str  # continues "This token may …"
    kinds: frozenset[TokenKind]
    default: bool = False  # offered as ticked when a token is made


_AGENT = frozenset({TokenKind.AGENT})
_SERVICE = frozenset({TokenKind.SERVICE})
TELEMETRY = "telemetry:write"

SCOPES = {
    scope.name: scope
    for scope in (
        Scope("me:read", "read who it is and what it may do", _AGENT, default=True),
        Scope("jobs:read", "read its owner’s jobs", _AGENT, default=True),
        Scope("jobs:declare", "say by receipts which jobs are its own", _AGENT, default=True),
        Scope("events:read", "wait for its owner’s job events", _AGENT, default=True),
        Scope("trials:request", "ask for trials", _AGENT, default=True),
        Scope("lessons:read", "look up lessons it may see", _AGENT, default=True),
        Scope("lessons:write", "record lessons in its project", _AGENT),
        Scope("agents:request", "ask that another agent of its owner be registered", _AGENT),
        Scope("extensions:read", "list admitted extensions", _AGENT, default=True),
        Scope("extensions:submit", "submit an extension for review", _AGENT),
        # Of itself alone, and only where its person or the site said yes: so whoever agrees needs no other token.
        Scope(TELEMETRY, "tell what its harness counts of itself", _AGENT, default=True),
        Scope("token:rotate", "make the token that replaces it, before it ends", _AGENT),
        Scope("lab:read", "read its lab’s jobs, without other people’s names", _AGENT),
        Scope("ingest:jobs", "send job records", _SERVICE),
        Scope("ingest:events", "send what Slurm’s hooks tell of jobs", _SERVICE),
        Scope("ingest:sessions", "send agent sessions", _SERVICE),
        Scope("ingest:findings", "send findings", _SERVICE),
        Scope("ingest:gpu", "send what jobs used of their GPUs", _SERVICE),
        Scope("ingest:activity", "send what was counted of commands on login nodes", _SERVICE),
    )
}


def scopes_for(kind: TokenKind) -> tuple[Scope, ...]:
    """List the scopes a kind of token can carry, in the order they are shown."""
    return tuple(scope for scope in SCOPES.values() if kind in scope.kinds)


def default_scopes(kind: TokenKind) -> frozenset[str]:
    """Name the scopes offered when a token is made."""
    return frozenset(scope.name for scope in scopes_for(kind) if scope.default)


def refused_scopes(names: Iterable[str], kind: TokenKind) -> tuple[str, ...]:
    """Name, sorted, the scopes that do not exist or that this kind of token cannot carry."""
    allowed = {scope.name for scope in scopes_for(kind)}
    return tuple(sorted(set(names) - allowed))


def grants(held: Iterable[str], needed: str) -> bool:
    """Say whether the scopes held include the one needed; no scope implies another."""
    return needed in set(held)
