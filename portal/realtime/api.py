"""`GET /api/v1/events`: live events by long-poll, `/stream`: as server-sent events. For tokens."""

from typing import Annotated

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Header, Query, Router

from portal.core.problems import EVERY_OPERATION, Problem, answers
from portal.realtime import longpoll, sse, viewers
from portal.realtime.messages import read_cursor
from portal.realtime.schemas import EventsOut
from portal.realtime.stream import MAX_SEQ
from portal.realtime.threads import in_database
from principals.auth import actor_of, requires

router = Router(tags=["events"], auth=requires(viewers.SCOPE))

After = Annotated[int | None, Query(ge=0, le=MAX_SEQ, description="The cursor: `next` of the last answer.")]
Wait = Annotated[float, Query(ge=0, le=longpoll.MAX_WAIT_S, description="Seconds to wait for the first event.")]
Topics = Annotated[str, Query(max_length=11_000, description="Topics `kind:key`, separated by commas; empty: yours.")]
LastEventId = Annotated[
    str, Header(alias="Last-Event-ID", max_length=19, pattern=r"^[0-9]*$", description="Goes before `after`.")
]
_STREAM = {
    "responses": {
        200: {
            "description": "Messages `hello`, `event`, `caught_up`, `resync`, `closed`, as over the socket; `id` is "
            "the cursor. A comment comes where nothing happens for 15 seconds.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
}


@router.get("", response=answers(200, EventsOut), summary="Wait for events")
async def list_events(
    request: HttpRequest, after: After = None, wait: Wait = 0, topics: Topics = ""
) -> longpoll.Answer:
    """Give events past `after` at once, or wait for the first. Without `after`: the present position only."""
    actor = actor_of(request)
    viewer, _ = viewers.of_token(request, actor)
    heard = await in_database(viewers.topics_for, actor, viewers.split_topics(topics))
    return await longpoll.poll(viewer, heard, after=after, wait_s=wait)


@router.get("/stream", response=dict.fromkeys(EVERY_OPERATION, Problem), openapi_extra=_STREAM, summary="Follow events")
async def stream_events(
    request: HttpRequest, after: After = None, topics: Topics = "", last: LastEventId = ""
) -> StreamingHttpResponse:
    """Tell events as they happen, without end (server-sent events). Without a cursor: from the present position on."""
    actor = actor_of(request)
    viewer, _ = viewers.of_token(request, actor)
    heard = await in_database(viewers.topics_for, actor, viewers.split_topics(topics))
    cursor = read_cursor(last)
    return await sse.respond(viewer, heard, after=after if cursor is None else cursor)
