"""Idempotency keys: the first answer to a write is kept, and given again to a retry (after pretix's design)."""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from ninja import Schema

from portal.core import clock
from portal.core.errors import Conflict, Invalid
from portal.core.models import IdempotencyKey

HEADER = "HTTP_IDEMPOTENCY_KEY"
KEPT = timedelta(days=1)
# A first call that took longer than this died on the way; the retry may run.
ABANDONED = timedelta(minutes=5)
# Answers that say "later" or "not my fault" are forgotten, so that the retry is tried.
FORGOTTEN = frozenset({409, 413, 429, 500, 502, 503})


P = ParamSpec("P")
Operation = Callable[Concatenate[HttpRequest, P], tuple[int, Schema]]


def idempotent(operation: Operation[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Let an API operation that writes honour `Idempotency-Key`; it returns `(status, schema)`.

    Stands below the router's decorator, so that the caller is known: keys of two callers never meet.
    """

    @wraps(operation)
    def run(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        def act() -> HttpResponse:
            status, body = operation(request, *args, **kwargs)
            return HttpResponse(body.model_dump_json(), status=status, content_type="application/json; charset=utf-8")

        actor: Any = request.auth  # type: ignore[attr-defined]
        return run_once(request, f"{actor.ref.kind}:{actor.ref.id}", act)

    return cast(Callable[Concatenate[HttpRequest, P], HttpResponse], run)


def run_once(request: HttpRequest, owner: str, act: Callable[[], HttpResponse]) -> HttpResponse:
    """Run `act`, or give the kept answer of an earlier call with the same key, owner, path and body.

    Errors: 409 while the first call runs, 422 where the key was used for something else.
    """
    key = request.META.get(HEADER, "")
    if not key:
        return act()
    if len(key) > 200:
        raise Invalid("The Idempotency-Key is longer than 200 characters.", code="idempotency_key_too_long")
    if not key.isprintable():
        raise Invalid("The Idempotency-Key holds control characters.", code="idempotency_key_malformed")
    digest = hashlib.sha256(request.body).hexdigest()
    # A key is for comparing alone, and some put a secret there: its digest is kept.
    row, kept = _claim(request, owner, hashlib.sha256(key.encode()).hexdigest(), digest)
    if kept is not None:
        return kept
    try:
        response = act()
        is_kept = not (response.status_code in FORGOTTEN or response.streaming)
        body = response.content if is_kept else b""
    except BaseException:
        IdempotencyKey.objects.filter(pk=row.pk).delete()
        raise
    if not is_kept:
        IdempotencyKey.objects.filter(pk=row.pk).delete()
        return response
    IdempotencyKey.objects.filter(pk=row.pk).update(
        state=IdempotencyKey.State.DONE, status=response.status_code,
        content_type=response.get("Content-Type", ""), body=body,
    )  # fmt: skip
    return response


def _place(request: HttpRequest) -> str:
    """Return path and query: what a request asks for stands in both. A long one is told by its digest."""
    full = request.get_full_path()
    return full if len(full) <= 300 else f"{full[:230]}…{hashlib.sha256(full.encode()).hexdigest()}"


def _claim(request: HttpRequest, owner: str, key: str, digest: str) -> tuple[IdempotencyKey, HttpResponse | None]:
    now = clock.now()
    stale = IdempotencyKey.objects.filter(owner=owner, key=key)
    stale.filter(created__lt=now - KEPT).delete()
    stale.filter(state=IdempotencyKey.State.RUNNING, created__lt=now - ABANDONED).delete()
    try:
        with transaction.atomic():
            row = IdempotencyKey.objects.create(
                owner=owner,
                key=key,
                method=request.method or "",
                path=_place(request),
                body_digest=digest,
            )
        return row, None
    except IntegrityError:
        found = IdempotencyKey.objects.filter(owner=owner, key=key).first()
        if found is None:  # the first call ended between our two statements with an answer that is forgotten
            raise Conflict("The first request with this key just ended.", code="in_progress", retry_after_s=1) from None
        row = found
    if (row.method, row.path, row.body_digest) != (request.method, _place(request), digest):
        raise Invalid(
            "This Idempotency-Key was used for another request.",
            code="idempotency_key_reused",
            remedy="Use a new key for a new request.",
        )
    if row.state == IdempotencyKey.State.RUNNING:
        raise Conflict("The first request with this key still runs.", code="in_progress", retry_after_s=1)
    response = HttpResponse(bytes(row.body), status=row.status or 200, content_type=row.content_type)
    response["Idempotency-Replayed"] = "true"
    return row, response


def prune() -> int:
    """Delete keys past their keeping time; return how many."""
    deleted, _ = IdempotencyKey.objects.filter(created__lt=clock.now() - KEPT).delete()
    return deleted
