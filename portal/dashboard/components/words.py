"""Filters and tags that write numbers and times; the rules are in `portal.dashboard.formats`."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.dashboard import formats
from portal.dashboard.components.library import register

for _name in (
    "count",
    "counted",
    "short",
    "percent",
    "points",
    "ratio",
    "signed",
    "money",
    "size",
    "duration",
    "stopwatch",
):
    register.filter(_name, getattr(formats, _name))


@register.filter
def gpu_hours(value: float | None) -> str:
    """Write GPU-hours in full."""
    return formats.hours(value, "GPU")


@register.filter
def core_hours(value: float | None) -> str:
    """Write core-hours in full."""
    return formats.hours(value, "core")


@register.filter
def share_of(part: float | None, whole: float | None) -> float | None:
    """Return part / whole, to be written with `percent` or drawn with `split`."""
    return formats.share_of(part, whole)


@register.filter
def or_absent(value: object) -> object:
    """Write an absent value as an en dash."""
    return formats.ABSENT if formats.is_absent(value) else value


def facility_zone() -> ZoneInfo:
    """Return the zone in which times are shown."""
    return ZoneInfo(settings.FACILITY_TIME_ZONE)


@register.simple_tag
def moment(value: dt.datetime | dt.date | None, form: str = "auto", now: dt.datetime | None = None) -> SafeString | str:
    """Write a <time> in the facility's zone; forms as in `formats.moment`, bare dates as 31 Oct 2026."""
    if value is None:
        return formats.ABSENT
    if not isinstance(value, dt.datetime):
        text = formats.day(value, year=form != "day")
        return format_html('<time datetime="{}">{}</time>', value.isoformat(), text)
    text = formats.moment(value, now or timezone.now(), facility_zone(), form)
    stamp = value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    title = formats.moment(value, value, facility_zone(), "date") + f", {value.astimezone(facility_zone()):%H:%M %Z}"
    return format_html('<time datetime="{}" title="{}">{}</time>', stamp, title, text)


@register.simple_tag
def date_range(first: dt.date, last: dt.date) -> str:
    """Write 7 Jul – 1 Aug, both days included."""
    return formats.date_range(first, last)
