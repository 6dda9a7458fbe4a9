"""The boundary of `policies`: words of agents and people lose secrets and control characters before they are stored."""

from security.services import cleaning


def stored_text(text: str, limit: int) -> str:
    """Return a text that may be stored, cut to `limit` characters."""
    return cleaning.clean_text(text)[:limit]
