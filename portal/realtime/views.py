"""`/live/events/`: live events by long-poll, for a signed-in browser that has no WebSocket."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_GET

from portal.core import problems
from portal.core.errors import DomainError, Invalid
from portal.realtime import longpoll, viewers
from portal.realtime.messages import read_cursor
from portal.realtime.threads import in_database


@require_GET
async def events(request: HttpRequest) -> HttpResponse:
    """Answer as `GET /api/v1/events` does; failures are problem+json, for a script reads them."""
    try:
        asked = viewers.split_topics(request.GET.get("topics", ""))
        after, wait_s = read_cursor(request.GET.get("after", "")), _read_wait(request.GET.get("wait", "0"))
        viewer, heard = await in_database(viewers.admit, {"session": request.session}, asked)
        return JsonResponse(await longpoll.poll(viewer, heard, after=after, wait_s=wait_s))
    except DomainError as error:
        return problems.from_error(error)


def _read_wait(text: str) -> float:
    if not (text.isascii() and text.isdigit()) or len(text) > 2 or int(text) > longpoll.MAX_WAIT_S:
        raise Invalid(f"`wait` must be 0 to {longpoll.MAX_WAIT_S:.0f} seconds.", code="wait_malformed")
    return float(text)
