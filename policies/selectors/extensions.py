"""Reads of extensions: what waits, what is admitted, and how a release differs from what was."""

from dataclasses import dataclass
from typing import Any

from policies.engine import extensions as engine
from policies.models import ExtensionRelease


@dataclass(frozen=True, slots=True)
class Comparison:
    """A release beside the newest admitted one of the same extension."""

    admitted: ExtensionRelease
    why_new: str
    diff: engine.CapabilityDiff


def compare_with_admitted(release: ExtensionRelease) -> Comparison | None:
    """Compare a release with the newest other one admitted; `None` where none is."""
    others = ExtensionRelease.objects.admitted().filter(extension_id=release.extension_id).exclude(pk=release.pk)
    admitted = others.select_related("extension").order_by("-decided_at", "-pk").first()
    if admitted is None:
        return None
    return Comparison(
        admitted=admitted,
        why_new=engine.needs_new_review(admitted.as_release, release.as_release) or "",
        diff=engine.capability_diff(admitted.capabilities, release.capabilities),
    )


def extensions_waiting(user: Any) -> int | None:
    """Count the releases that wait for review, for the rail of those who review them."""
    if not (getattr(user, "is_research_computing", False) or getattr(user, "is_infosec", False)):
        return None
    return ExtensionRelease.objects.filter(state=ExtensionRelease.State.QUEUED).count()
