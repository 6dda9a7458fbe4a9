"""Answers that a caller may keep: a strong ETag of the very bytes, and 304 to who has them already (RFC 9110, 13)."""

import hashlib

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response


def answer_once(request: HttpRequest, response: HttpResponse, *, cache: str) -> HttpResponseBase:
    """Name an answer by its content; give 304 where the caller has it. `cache` is its Cache-Control.

    There is no Last-Modified: the same policy reads differently for another agent, and after an upgrade.
    """
    etag = f'"{hashlib.sha256(response.content).hexdigest()[:32]}"'
    response["ETag"], response["Cache-Control"] = etag, cache
    answer: HttpResponseBase = get_conditional_response(request, etag=etag, response=response) or response
    return answer
