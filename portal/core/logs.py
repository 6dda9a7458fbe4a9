"""Structured logs: JSON lines on stderr, one request id through web, worker and commands; secrets never."""

import re
from typing import Any

import structlog

# Our own tokens are the secrets this process handles; nothing that looks like one reaches a log line.
_OWN_TOKEN = re.compile(r"\b(gh[as]_[0-9A-Za-z]{12})\.[0-9A-Za-z]{20,}")


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
    return event


SHARED_PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    drop_query,
    mask_tokens,
]


def configure() -> None:
    """Send structlog through the standard library's handlers, so that both share one format."""
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
