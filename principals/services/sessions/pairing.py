"""One row for a session that a harness declares and a collector sees, whichever comes first.

A row with a process is one that was seen; its `declaration` is the declared half, where it has one. A declared session
that was not seen is a row without a process. Each of them that is new, or whose end changed, looks for the nearest
other half that is nearer to it than to what that has; whoever loses its half by this looks on. As no two pairs are
equally near, this ends where taking the nearest pair of all, then the next, would; and it looks at neighbours alone.
What a gateway's log tells is no half of any: the harness that asks runs elsewhere.
Rows of a cluster are written one call after the other (its row is locked), so no two calls look at once.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db.models import Q, QuerySet

from principals.engine.pairing import AFTER_S, BEFORE_S, Rank, Seen, rank
from principals.models import AgentSession, SessionDeclaration
from principals.models.agents import AgentSessionQuerySet

# What a collector knows.
_SEEN: Final = ("process", "place", "evidence", "raw_job_id", "started", "ended", "last_seen", "source")
_BEFORE, _AFTER = timedelta(seconds=BEFORE_S), timedelta(seconds=AFTER_S)


class Span(NamedTuple):
    """The time of a session, before or after it changed: jobs of its login name may be somebody else's now."""

    cluster_user_id: int
    started: datetime
    ended: datetime | None


def settle(rows: Iterable[AgentSession]) -> list[Span]:
    """Let rows look for their other half; return the spans whose jobs are to be attributed anew.

    A declared row that finds one is gone: `find_declaration` says of which it is part. Rows that were seen stay.
    """
    queue, spans = list(rows), list[Span]()
    while queue:
        row = queue.pop()
        if row.process:
            _settle_seen(row, queue, spans)
        elif _is_half(row) and AgentSession.objects.filter(pk=row.pk).exists():  # none took it meanwhile
            _settle_declared(row, queue, spans)
    return spans


def find_alone(seen: AgentSession) -> AgentSession | None:
    """Return the declared row that a session, seen for the first time and not stored yet, is the same as.

    None where the nearest half is another one's now: then it has to be stored, and to settle.
    """
    nearest = _nearest_declared(seen, None)
    return nearest if isinstance(nearest, AgentSession) else None


def put_on(declared: AgentSession, seen: AgentSession) -> Span:
    """Make a declared row the one of a session that was seen, not stored yet; return its span as it was."""
    before = _span(declared)
    _declare(declared, declared)
    for name in _SEEN:
        setattr(declared, name, getattr(seen, name))
    declared.agent = declared.agent or seen.agent
    declared.save(update_fields=[*_SEEN, "agent"])
    return before


def find_declaration(like: AgentSession) -> SessionDeclaration | None:
    """Return the declaration, as part of a row that was seen, of what a declared row would say."""
    if not _is_half(like):
        return None
    return _declarations(like).filter(started=like.started).select_related("session").first()


def _settle_seen(row: AgentSession, queue: list[AgentSession], spans: list[Span]) -> None:
    own = SessionDeclaration.objects.filter(session=row).first()
    if own is not None and _rank(own.started, row) is None:  # it was over before
        queue.append(_part(own, row, spans))
        own = None
    nearest = _nearest_declared(row, own)
    if nearest is None:
        return
    if own is not None:
        queue.append(_part(own, row, spans))
    if isinstance(nearest, SessionDeclaration):
        other = nearest.session
        queue.append(other)
        nearest = _part(nearest, other, spans)
    _join(nearest, row, spans)


def _settle_declared(row: AgentSession, queue: list[AgentSession], spans: list[Span]) -> None:
    best: tuple[Rank, AgentSession, SessionDeclaration | None] | None = None
    window = Q(started__gte=row.started - _AFTER, started__lte=row.started + _BEFORE)
    for seen in _group(row).exclude(process="").filter(window).select_related("declaration"):
        near, own = _rank(row.started, seen), getattr(seen, "declaration", None)
        if near is not None and _is_nearer(near, own, seen) and (best is None or near < best[0]):
            best = near, seen, own
    if best is None:
        return
    _, seen, own = best
    if own is not None:
        queue.append(_part(own, seen, spans))
    _join(row, seen, spans)


def _nearest_declared(row: AgentSession, own: SessionDeclaration | None) -> AgentSession | SessionDeclaration | None:
    """Return the nearest declared half, nearer than its own one, that is nearer to this row than to its own."""
    window = Q(started__gte=row.started - _BEFORE, started__lte=row.started + _AFTER)
    best: tuple[Rank, AgentSession | SessionDeclaration] | None = None
    alone = _group(row).filter(window, process="")
    paired = _declarations(row).filter(window).exclude(session=row.pk).select_related("session")
    for half in (*alone, *paired):
        near = _rank(half.started, row)
        if near is None or not _is_nearer(near, own, row) or (best is not None and best[0] < near):
            continue
        if isinstance(half, AgentSession) or _is_nearer(near, half, half.session):
            best = near, half
    return best[1] if best else None


def _is_nearer(near: Rank, own: SessionDeclaration | None, row: AgentSession) -> bool:
    """Say whether a pair is nearer than the declaration that a row has, if it has one."""
    if own is None:
        return True
    present = _rank(own.started, row)
    return present is None or near < present


def _rank(declared: datetime, row: AgentSession) -> Rank | None:
    end_s = int(row.ended.timestamp()) if row.ended else None
    return rank(int(declared.timestamp()), Seen(row.process, int(row.started.timestamp()), end_s))


def _key(row: AgentSession) -> dict[str, object]:
    names = ("cluster_id", "cluster_user_id", "host", "kind", "harness")
    return {name: getattr(row, name) for name in names}


def _is_half(row: AgentSession) -> bool:
    """Say whether a row without a process may be what was declared of one that has a process."""
    return row.place != AgentSession.Place.GATEWAY


def _group(row: AgentSession) -> AgentSessionQuerySet:
    return AgentSession.objects.filter(**_key(row)).exclude(place=AgentSession.Place.GATEWAY, process="")


def _declarations(row: AgentSession) -> QuerySet[SessionDeclaration]:
    return SessionDeclaration.objects.filter(**{f"session__{name}": value for name, value in _key(row).items()})


def _declare(said: AgentSession, row: AgentSession) -> None:
    SessionDeclaration.objects.create(
        session=row, started=said.started, ended=said.ended, campaign=said.campaign, source=said.source,
        received=said.received,
    )  # fmt: skip


def _join(declared: AgentSession, row: AgentSession, spans: list[Span]) -> None:
    """Make a declared row part of one that was seen; what refers to it refers to that one then."""
    spans += (_span(declared), _span(row))
    _declare(declared, row)
    AgentSession.objects.filter(pk=row.pk).update(campaign=declared.campaign, agent=row.agent or declared.agent)
    row.campaign, row.agent = declared.campaign, row.agent or declared.agent
    for relation in AgentSession._meta.related_objects:  # jobs, findings: whatever the apps above have
        if relation.related_model is not SessionDeclaration:
            name, others = relation.field.name, relation.related_model._base_manager
            others.filter(**{name: declared.pk}).update(**{name: row.pk})
    AgentSession.objects.filter(pk=declared.pk).delete()


def _part(declaration: SessionDeclaration, row: AgentSession, spans: list[Span]) -> AgentSession:
    """Make a declaration a row of its own again, which is returned. What refers to the session stays with the process.

    Jobs find theirs by their time.
    """
    declaration.delete()
    AgentSession.objects.filter(pk=row.pk).update(campaign="")
    row.campaign = ""
    alone = AgentSession.objects.create(
        **_key(row), started=declaration.started, ended=declaration.ended, campaign=declaration.campaign,
        source=declaration.source, received=declaration.received, agent=row.agent,
    )  # fmt: skip
    spans += (_span(alone), _span(row))
    return alone


def _span(row: AgentSession) -> Span:
    return Span(row.cluster_user_id, row.started, row.ended)
