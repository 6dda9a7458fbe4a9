"""`{% load gatehouse %}`: every tag and filter pages are made of (listed in docs/ui.md)."""

from portal.dashboard.components import blocks, forms, offers, pictures, small, states, tables, words
from portal.dashboard.components.library import register

__all__ = ["blocks", "forms", "offers", "pictures", "register", "small", "states", "tables", "words"]
