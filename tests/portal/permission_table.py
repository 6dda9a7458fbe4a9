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
    signed_in("GET", "/trials/"),
    signed_in("GET", "/trials/requests/"),
    # The colleague gives it back first: those who could have done so too find it gone, others may not or see nothing.
    Row(
        "POST",
        "/trials/{trial}/cancel/",
        409,
        {"nobody": 302, "colleague": 302, "outsider": 404, "infosec": 403, "auditor": 403},
    ),
    Row("GET", "/trials/limits/", 403, {"nobody": 302, "staff": 200}),
    signed_in("GET", "/extensions/"),
    signed_in("GET", "/extensions/submit/"),
    # The colleague submitted it; before it is admitted only they and the facility's offices see it.
    Row("GET", "/extensions/{queued_extension}/", 200, {"nobody": 302, "pi": 404, "manager": 404, "outsider": 404}),
    signed_in("GET", "/extensions/{admitted_extension}/"),
    Row(
        "POST",
        "/extensions/{queued_extension}/decide/",
        404,
        {"nobody": 302, "colleague": 403, "staff": 422, "infosec": 422, "auditor": 403},
    ),
]

OPERATIONS: list[Row] = [
    Row("GET", "/api/v1/openapi.json", 200),
    Row("GET", "/api/v1/me", 200, {"none": 401, "service": 403}),
    Row("POST", "/api/v1/trials", 201, {"none": 401, "service": 403}, {"minutes": 5}),
    Row("GET", "/api/v1/trials", 200, {"none": 401, "service": 403}),
    Row("GET", "/api/v1/trials/budget", 200, {"none": 401, "service": 403}),
    Row("GET", "/api/v1/trials/{trial}", 200, {"none": 401, "foreign_agent": 404, "service": 403}),
    Row("POST", "/api/v1/trials/{trial}/cancel", 200, {"none": 401, "foreign_agent": 404, "service": 403}),
    Row("GET", "/api/v1/extensions", 200, {"none": 401, "service": 403}),
    Row("POST", "/api/v1/extensions", 422, {"none": 401, "service": 403}),
    Row("GET", "/api/v1/extensions/{agents_extension}", 200, {"none": 401, "foreign_agent": 404, "service": 403}),
]
