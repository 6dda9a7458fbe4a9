"""Static files from the web process, as plain answers."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise, whose files are plain iterators: an ASGI server draws the whole of one, and warns of it.

    So a file is read here, in the thread of its request: the largest has a few MB. Written piece by piece, an answer
    would count as broken off by each browser that leaves after the last byte.
    """

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """Return the answer for a file; a part of it, or none, where the request says so."""
        found = WhiteNoiseMiddleware.serve(static_file, request)
        try:
            response = HttpResponse(b"".join(found.streaming_content), status=found.status_code)
        finally:
            found.close()
        response.headers = found.headers
        return response
