"""Pages of `security`: the list of incidents with one of them beside it."""

from security.views.pages import incident, incidents

__all__ = ["incident", "incidents"]
