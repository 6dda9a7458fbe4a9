"""Structured logs: JSON lines on stderr, one request id through web, worker and commands; secrets never."""

import re
from collections.abc import Callable
from typing import Any

import structlog

# Our own tokens are the secrets this process handles; nothing that looks like one reaches a log line.
_OWN_TOKEN = re.compile(r"\b(gh[as]_[0-9A-Za-z]{12})\.[0-9A-Za-z]{20,}")

# Uvicorn tells of every socket with its query.
_SOCKET_QUERY = re.compile(r'("WebSocket [^"?\s]*)\?[^"\s]*')
# Of what a client wrote, as much is looked at and as much is kept. A secret that the first cut split would no longer
# look like one, so that what stands near that cut goes.
_FROM_CLIENT = frozenset({"request", "user_agent"})
_LOOKED_AT, _NEAR_CUT, _KEPT = 4000, 1000, 300

Redactor = Callable[[str], str]
# The kernel stands below the engine that knows secrets: `configure` is given it.
_redactors: list[Redactor] = []


def redacted(text: str) -> str:
    """Return a text without the secrets in it."""
    for redact in _redactors:
        text = redact(text)
    return text


def _short(text: str) -> str:
    clean = redacted(text[:_LOOKED_AT])
    if len(text) > _LOOKED_AT:
        return clean[: max(0, len(clean) - _NEAR_CUT)][:_KEPT] + "…"
    return clean if len(clean) <= _KEPT else clean[:_KEPT] + "…"


def redact_texts(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    """Take the secrets out of every text of a log event, and bound what clients wrote."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = _short(value) if name in _FROM_CLIENT else redacted(value)
    return event


def mask_tokens(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    """Mask our tokens in every text of a log event."""
    for name, value in event.items():
        if isinstance(value, str) and "gh" in value:
            event[name] = _OWN_TOKEN.sub(r"\1.[REDACTED]", value)
    return event


def drop_query(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    """Keep a request's path and leave its query out: people and agents put error texts and names there."""
    request = event.get("request")
    if isinstance(request, str):
        event["request"] = request.partition("?")[0]
    said = event.get("event")
    if isinstance(said, str) and "WebSocket" in said:
        event["event"] = _SOCKET_QUERY.sub(r"\1", said)
    return event


SHARED_PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    drop_query,
    mask_tokens,
    redact_texts,
]


def configure(*redactors: Redactor) -> None:
    """Send structlog through the standard library's handlers, so that both share one format.

    `redactors` take the secrets out of a text, one after the other.
    """
    _redactors[:] = redactors
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED_PROCESSORS,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def logging_config(level: str) -> dict[str, Any]:
    """Return Django's LOGGING."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processor": structlog.processors.JSONRenderer(),
                "foreign_pre_chain": SHARED_PROCESSORS,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django.server": {"level": "WARNING"},
            # Every answer is logged with its status already (at INFO below 500); here only faults say why.
            "django.request": {"level": "ERROR"},
            # Uvicorn brings handlers of its own form; what it says goes the way of all else.
            "uvicorn": {"handlers": [], "propagate": True, "level": level},
            "uvicorn.access": {"handlers": [], "propagate": True, "level": "WARNING"},
        },
    }
