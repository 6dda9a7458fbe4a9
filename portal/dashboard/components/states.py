"""States in words and shapes: which chip each state of each thing gets (design, section 4)."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.dashboard.components.library import icon_html, register

PLAIN, GO, WAIT, OFF, CAUTION, CRITICAL, LOUD = "done", "go", "wait", "off", "caution", "critical", "loud"
# style -> the icon it carries where the state names none of its own
STYLE_ICONS = {
    PLAIN: "check", GO: "check", WAIT: "clock", OFF: "slash", CAUTION: "alert", CRITICAL: "x", LOUD: "octagon",
}  # fmt: skip

JOB: dict[str, tuple[str, ...]] = {
    "completed": (PLAIN, "Completed"),
    "running": (GO, "Running", "play"),
    "completing": (GO, "Completing", "play"),
    "pending": (WAIT, "Pending"),
    "suspended": (WAIT, "Suspended", "pause"),
    "requeued": (WAIT, "Requeued"),
    "cancelled": (OFF, "Cancelled"),
    "preempted": (OFF, "Preempted"),
    "timeout": (CAUTION, "Timeout", "clock"),
    "deadline": (CAUTION, "Deadline", "clock"),
    "failed": (CRITICAL, "Failed"),
    "out_of_memory": (CRITICAL, "Out of memory"),
    "node_fail": (CRITICAL, "Node failure"),
    "boot_fail": (CRITICAL, "Boot failure"),
}
AGENT: dict[str, tuple[str, ...]] = {
    "active": (GO, "Active"),
    "requested": (WAIT, "Requested"),
    "retired": (OFF, "Retired"),
    "refused": (OFF, "Refused"),
    "aup_required": (CAUTION, "AUP required", "doc"),
    "expires_soon": (CAUTION, "Expires soon", "clock"),
    "expired": (OFF, "Expired"),
    "held": (CRITICAL, "Held", "stop"),
    "suspended": (CRITICAL, "Suspended", "stop"),
}
SEVERITY: dict[str, tuple[str, ...]] = {
    "low": (WAIT, "Low", "info"),
    "medium": (CAUTION, "Medium"),
    "high": (CRITICAL, "High", "alert"),
    "critical": (LOUD, "Critical"),
}
INCIDENT: dict[str, tuple[str, ...]] = {
    "resolved": (PLAIN, "Resolved"),
    "false_alarm": (PLAIN, "False alarm"),
    "accepted": (PLAIN, "Accepted"),
    "contained": (GO, "Contained"),
    "new": (WAIT, "New", "info"),
    "triaged": (WAIT, "Triaged", "clock"),
    "reopened": (CAUTION, "Reopened"),
}
LADDER: dict[str, tuple[str, ...]] = {
    "normal": (PLAIN, "Normal"),
    "notice": (WAIT, "Notice", "info"),
    "slower_refill": (CAUTION, "Slower refill", "clock"),
    "cool_down": (CAUTION, "Cool-down", "clock"),
    "withdrawn": (CRITICAL, "Withdrawn", "stop"),
}
EXTENSION: dict[str, tuple[str, ...]] = {
    "admitted": (PLAIN, "Admitted"),
    "queued": (WAIT, "Queued"),
    "revoked": (OFF, "Revoked"),
    "with_conditions": (CAUTION, "With conditions"),
    "denied": (CRITICAL, "Denied"),
}
SOURCE: dict[str, tuple[str, ...]] = {
    "current": (PLAIN, "Current", "dot"),
    "not_configured": (OFF, "Not configured"),
    "late": (CAUTION, "Late", "diamond"),
    "down": (CRITICAL, "Down", "square"),
}
REPORT: dict[str, tuple[str, ...]] = {
    "published": (GO, "Published"),
    "approved": (PLAIN, "Approved"),
    "draft": (WAIT, "Draft", "doc"),
    "superseded": (OFF, "Superseded"),
}
CRITERION: dict[str, tuple[str, ...]] = {
    "met": (PLAIN, "Met"),
    "not_met": (CRITICAL, "Not met"),
    "not_known": (OFF, "Not known"),
}
WEBHOOK: dict[str, tuple[str, ...]] = {
    "on": (GO, "On"),
    "off": (OFF, "Off"),
}
DELIVERY: dict[str, tuple[str, ...]] = {
    "delivered": (PLAIN, "Delivered"),
    "open": (WAIT, "Waiting"),
    "dropped": (OFF, "Dropped"),
    "failed": (CAUTION, "Failed"),
    "dead": (CRITICAL, "Dead letter"),
}
KILL_SWITCH: dict[str, tuple[str, ...]] = {
    "asked": (CAUTION, "Waits for a second person", "clock"),
    "in_force": (CRITICAL, "In force", "stop"),
    "ended": (PLAIN, "Ended"),
    "lapsed": (OFF, "Lapsed"),
    "withdrawn": (OFF, "Withdrawn"),
    "drill": (WAIT, "Drill", "info"),
}
KINDS: dict[str, dict[str, tuple[str, ...]]] = {
    "job": JOB, "agent": AGENT, "severity": SEVERITY, "incident": INCIDENT,
    "ladder": LADDER, "extension": EXTENSION, "source": SOURCE, "report": REPORT,
    "criterion": CRITERION, "kill_switch": KILL_SWITCH,
    "webhook": WEBHOOK, "delivery": DELIVERY,
}  # fmt: skip
DOTS = {"dot": "dot", "diamond": "dot dot--caution", "square": "dot dot--critical"}


def look(kind: str, state: object) -> tuple[str, str, str]:
    """Return (style, word, icon) of a state; one we do not know is neutral and keeps its own word."""
    key = str(getattr(state, "value", state)).lower().replace("-", "_").replace(" ", "_")
    found = KINDS[kind].get(key)
    if found is None:
        return OFF, str(state).replace("_", " ").capitalize(), ""
    return found[0], found[1], found[2] if len(found) > 2 else STYLE_ICONS[found[0]]


@register.simple_tag
def chip(kind: str, state: object, label: str = "") -> SafeString:
    """Draw the chip of a state: kind job, agent, severity, incident, ladder, extension, source, report, … (`KINDS`)."""
    style, word, shape = look(kind, state)
    return chip_html(style, label or word, shape)


@register.simple_tag
def mark(style: str, label: str, icon: str | None = None) -> SafeString:
    """Draw a chip that is not in the table of states: style done, go, wait, off, caution, critical or loud."""
    return chip_html(style, label, STYLE_ICONS[style] if icon is None else icon)


def chip_html(style: str, label: str, shape: str) -> SafeString:
    """Return a chip with an icon, a dot, or neither."""
    sign = format_html('<span class="{}"></span>', DOTS[shape]) if shape in DOTS else SafeString("")
    if shape and not sign:
        sign = icon_html(shape)
    return format_html('<span class="chip chip--{}">{}{}</span>', style, sign, label)


@register.simple_tag
def dot(state: str = "current") -> SafeString:
    """Draw the dot of a source: current, late or down; a word must stand beside it."""
    _, word, shape = look("source", state)
    return format_html('<span class="{}"></span><span class="sr">{}: </span>', DOTS.get(shape, "dot"), word)
