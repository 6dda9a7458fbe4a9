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
        found = static_file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file as file:
                body = file.read()
        response = HttpResponse(body, status=int(found.status))
        del response["Content-Type"]  # theirs, or none
        for name, value in found.headers:
            response[name] = value
        return response
