"""Who gets what from every route: one row a method and path, one status a role. Nothing else decides it.

`pages` are for people who sign in; `operations` for tokens. A path may name objects of the cast as `{agent}`.
302 is the way to the sign-in page. A role that is not named in a row gets what `others` says.
"""

from dataclasses import dataclass, field

PEOPLE = ("nobody", "colleague", "pi", "manager", "outsider", "staff", "infosec", "auditor")
TOKENS = ("none", "agent", "foreign_agent", "service")


@dataclass(frozen=True)
class Row:
    """One route, and the status for each role."""

    method: str
    path: str
    others: int
    statuses: dict[str, int] = field(default_factory=dict)
    body: dict[str, object] | str | None = None

    def expect(self, role: str) -> int:
        return self.statuses.get(role, self.others)


def signed_in(method: str, path: str, **statuses: int) -> Row:
    """A page for everybody who is signed in."""
    return Row(method, path, 200, {"nobody": 302} | statuses)


PAGES: list[Row] = [
    Row("GET", "/healthz", 200),
    Row("GET", "/readyz", 200),
    Row("GET", "/metrics", 403, {"staff": 200}),
    signed_in("GET", "/incidents/"),
    Row("GET", "/incidents/{incident}/", 200, {"nobody": 302, "outsider": 404}),
    Row("POST", "/incidents/{incident}/", 403, {"nobody": 302, "outsider": 404, "infosec": 422}),
]

OPERATIONS: list[Row] = [
    Row("GET", "/api/v1/openapi.json", 200),
    Row("GET", "/api/v1/me", 200, {"none": 401, "service": 403}),
    Row(
        "POST",
        "/api/v1/ingest/findings",
        403,
        {"none": 401, "service": 200},
        {
            "cluster": "aster",
            "findings": [
                {"kind": "other", "detector": "d", "occurred": "2026-07-01T00:00:00Z", "host": "login01"},
            ],
        },
    ),
]
