"""Verbs of `telemetry`, called through this module."""

from telemetry.services.rollups import catch_up, mark_dirty, refresh, touched_days

__all__ = ["catch_up", "mark_dirty", "refresh", "touched_days"]
