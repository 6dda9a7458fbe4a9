"""`GET /api/v1/events`: live events by long-poll, for tokens."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router

from portal.core.problems import answers
from portal.realtime import longpoll, viewers
from portal.realtime.schemas import EventsOut
from portal.realtime.stream import MAX_SEQ
from portal.realtime.threads import in_database
from principals.auth import actor_of, requires

router = Router(tags=["events"], auth=requires(viewers.SCOPE))

After = Annotated[int | None, Query(ge=0, le=MAX_SEQ, description="The cursor: `next` of the last answer.")]
Wait = Annotated[float, Query(ge=0, le=longpoll.MAX_WAIT_S, description="Seconds to wait for the first event.")]
Topics = Annotated[str, Query(max_length=11_000, description="Topics `kind:key`, separated by commas; empty: yours.")]


@router.get("", response=answers(200, EventsOut), summary="Wait for events")
async def list_events(
    request: HttpRequest, after: After = None, wait: Wait = 0, topics: Topics = ""
) -> longpoll.Answer:
    """Give events past `after` at once, or wait for the first. Without `after`: the present position only."""
    actor = actor_of(request)
    viewer, _ = viewers.of_token(request, actor)
    heard = await in_database(viewers.topics_for, actor, viewers.split_topics(topics))
    return await longpoll.poll(viewer, heard, after=after, wait_s=wait)
