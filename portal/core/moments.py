"""Instants as the API takes them: ISO 8601 with a zone, and nothing that pydantic would read as one besides."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator


def _require_text(given: Any) -> Any:
    """Refuse numbers, also as text: nobody can tell seconds from milliseconds, and the description promises neither."""
    is_text = isinstance(given, str) and not given.strip().lstrip("+-").replace(".", "", 1).isdigit()
    if not (is_text or isinstance(given, datetime)):
        raise ValueError("a time is ISO 8601 text with a zone, as 2026-06-01T12:00:00Z")
    return given


Moment = Annotated[AwareDatetime, BeforeValidator(_require_text)]
