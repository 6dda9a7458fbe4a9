"""What the frame around every page shows: who may go where, what waits there, how old the data is.

Apps stand below the portal and cannot be asked by name, so the portal registers a callable for each number
(`register_count`), for when the sources were heard (`register_last_heard`) and for a person's labs (`register_labs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

STAFF, INFOSEC, AUDITOR, MEMBER = "staff", "infosec", "auditor", "member"
EVERYBODY = frozenset({STAFF, INFOSEC, AUDITOR, MEMBER})
OFFICE = EVERYBODY - {MEMBER}
THEMES = ("system", "light", "dark")
INGEST_LOOKERS = frozenset({STAFF, AUDITOR})


@dataclass(frozen=True)
class NavItem:
    """One entry of the rail: `count` names a registered counter."""

    label: str
    url_name: str
    count: str = ""
    roles: frozenset[str] = EVERYBODY


@dataclass(frozen=True)
class Count:
    """How many wait behind an entry; `due` when some are past their time."""

    value: int
    due: bool = False


@dataclass(frozen=True)
class LastHeard:
    """When a source was last heard, as "Last heard 4 s ago"; current, late or down; `more` where there is room."""

    text: str
    state: str = "current"
    more: str = ""


@dataclass(frozen=True)
class Link:
    """A rail entry ready to draw."""

    label: str
    url: str
    current: bool
    count: Count | None = None


@dataclass
class Group:
    """Rail entries under one heading."""

    title: str
    links: list[Link] = field(default_factory=list)


KNOW = (
    NavItem("Hardware", "hardware", roles=frozenset({STAFF, MEMBER})),
    NavItem("Lessons", "lessons", roles=frozenset({STAFF, MEMBER})),
    NavItem("Reports", "reports"),
    NavItem("Audit", "audit"),
)
OFFICE_NAV = (
    (
        "Watch",
        (
            NavItem("Overview", "overview", roles=OFFICE),
            NavItem("Live jobs", "live-jobs", roles=OFFICE),
            NavItem("Incidents", "incidents", "incidents", OFFICE),
            NavItem("Login nodes", "login-nodes", roles=INGEST_LOOKERS),
            NavItem("Ingest health", "ingest-health", roles=INGEST_LOOKERS),
        ),
    ),
    (
        "Steer",
        (
            NavItem("Agents", "agents", "agents", OFFICE),
            NavItem("Trials", "trials", "trials", frozenset({STAFF})),
            NavItem("Extensions", "extensions", "extensions", OFFICE),
            NavItem("AUP", "aup"),
            NavItem("Kill switch", "kill-switches", "kill-switches", OFFICE),
            NavItem("Appeals", "appeals", "appeals", OFFICE),
        ),
    ),
    ("Know", KNOW),
)
MEMBER_NAV = (
    (
        "Yours",
        (
            NavItem("My lab", "my-lab", "approvals"),
            NavItem("Agents", "agents"),
            NavItem("Live jobs", "live-jobs"),
            NavItem("Incidents", "incidents", "own-incidents"),
        ),
    ),
    ("Rules", (NavItem("AUP", "aup"), NavItem("Trials", "trials"), NavItem("Extensions", "extensions"))),
    ("Know", KNOW),
)

_counts: dict[str, Callable[[Any], Count | int | None]] = {}
_heard: list[Callable[[], LastHeard | None]] = []
_labs: list[Callable[[Any], Iterable[Any]]] = []
_demo: list[Callable[[], bool]] = []


def register_count(name: str, provider: Callable[[Any], Count | int | None]) -> None:
    """Let `provider(user)` answer how many wait behind the entry whose counter is `name`."""
    _counts[name] = provider


def register_last_heard(provider: Callable[[], LastHeard | None]) -> None:
    """Let `provider()` say when the sources were last heard; the last one registered wins."""
    _heard[:] = [provider]


def register_labs(provider: Callable[[Any], Iterable[Any]]) -> None:
    """Let `provider(user)` list the labs a person belongs to; the last one registered wins."""
    _labs[:] = [provider]


def register_demo(provider: Callable[[], bool]) -> None:
    """Let `provider()` say whether the rows are invented; the last one registered wins."""
    _demo[:] = [provider]


def role_of(user: Any) -> str:
    """Return the role that decides the rail: staff before InfoSec before auditor before member."""
    for attribute, role in (
        ("is_research_computing", STAFF),
        ("is_infosec", INFOSEC),
        ("is_auditor", AUDITOR),
    ):
        if getattr(user, attribute, False):
            return role
    return MEMBER


ROLE_NAMES = {STAFF: "Research computing staff", INFOSEC: "InfoSec", AUDITOR: "Auditor", MEMBER: "Member"}


def url_or_none(name: str) -> str | None:
    """Return the address of a named page, or None while nobody serves it."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return None


def count_for(name: str, user: Any) -> Count | None:
    """Return a registered count that is worth showing; zero and unknown names show nothing."""
    provider = _counts.get(name)
    found = provider(user) if provider else None
    found = Count(found) if isinstance(found, int) else found
    return found if found and found.value else None


def navigation(user: Any, path: str) -> list[Group]:
    """Return the rail for `user`: entries of its role that somebody serves; the longest match is current."""
    role = role_of(user)
    here = _current(path)
    groups = []
    for title, items in MEMBER_NAV if role == MEMBER else OFFICE_NAV:
        group = Group(title)
        for item in items:
            url = url_or_none(item.url_name) if role in item.roles else None
            if url:
                group.links.append(Link(item.label, url, url == here, count_for(item.count, user)))
        if group.links:
            groups.append(group)
    return groups


def _current(path: str) -> str | None:
    names = {item.url_name for _, items in (*OFFICE_NAV, *MEMBER_NAV) for item in items}
    urls = [url for url in map(url_or_none, names) if url and (path == url or (url != "/" and path.startswith(url)))]
    return max(urls, key=len, default=None)


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context processor: `shell` for the frame, `theme` for <html>, `facility` and its zone.

    Everything behind `shell` is worked out when the frame asks for it, so that partials pay nothing.
    """
    theme = request.COOKIES.get("theme", "system")
    return {
        "shell": Shell(request),
        "theme": theme if theme in THEMES else "system",
        "facility": settings.FACILITY_NAME,
        "facility_zone": settings.FACILITY_TIME_ZONE,
        "demo": bool(_demo) and _demo[0],
    }


class Shell:
    """The frame's data for one request; templates read its attributes."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.user: Any = getattr(request, "user", None)

    def groups(self) -> list[Group]:
        """Return the rail's groups."""
        return navigation(self.user, self.request.path) if self.signed_in() else []

    def signed_in(self) -> bool:
        """Say whether somebody is signed in."""
        return bool(getattr(self.user, "is_authenticated", False))

    def role(self) -> str:
        """Return the role's name as the rail writes it; a member's first lab is named."""
        role = role_of(self.user)
        labs = self.labs() if role == MEMBER else []
        return str(labs[0]) if labs else ROLE_NAMES[role]

    def labs(self) -> list[Any]:
        """Return the person's labs."""
        return list(_labs[0](self.user)) if _labs else []

    def last_heard(self) -> LastHeard | None:
        """Return when the sources were last heard, or None where none was."""
        return _heard[0]() if _heard else None

    def urls(self) -> dict[str, str | None]:
        """Return the addresses the frame links to; the entry is None while nobody serves it."""
        names = {
            "home": "home",
            "search": "search",
            "health": "ingest-health",
            "sign_in": "sign-in",
            "sign_out": "sign-out",
            "webhooks": "webhooks",
            "notices": "notices",
            "held_about_me": "held-about-me",
            "account": "mfa_index",
        }
        urls = {key: url_or_none(name) for key, name in names.items()}
        if role_of(self.user) not in INGEST_LOOKERS:
            urls["health"] = None
        if not (self.signed_in() and self.user.has_usable_password()):
            urls["account"] = None  # they sign in elsewhere
        return urls
