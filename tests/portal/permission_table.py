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


def for_the_lab(
    method: str,
    path: str,
    allowed: int,
    *,
    staff: int,
    infosec: int = 0,
    auditor: int = 403,
    others: int = 404,
    member: int = 0,
) -> Row:
    """Something of the cast's lab: its people act, the facility's roles as said, the outsider finds nothing."""
    roles = dict.fromkeys(("pi", "manager"), allowed) | {"colleague": member or allowed}
    return Row(
        method, path, others, roles | {"nobody": 302, "staff": staff, "infosec": infosec or staff, "auditor": auditor}
    )


def reason_first(path: str) -> Row:
    """An act that asks for a reason before it looks who asks (tests/dashboard/test_agents_pages.py does the rest)."""
    return Row("POST", path, 422, {"nobody": 302, "auditor": 403})


# A POST without a body: 422 is the form's refusal of what is missing, so the door itself is open.
PAGES: list[Row] = [
    Row("GET", "/sign-in/", 302, {"nobody": 200}),
    Row("GET", "/sign-out/", 405),
    # No provider is set: tests/principals/test_sign_in_openid.py has one.
    Row("GET", "/sign-in/with/{provider}/", 404),
    Row("GET", "/sign-in/with/{provider}/callback/", 404),
    # Nor one for SAML: tests/principals/test_sign_in_saml.py has one.
    *(Row("GET", f"/sign-in/saml/{page}", 404) for page in ("", "finish/", "metadata/")),
    Row("POST", "/sign-in/saml/acs/", 404),
    Row("GET", "/sign-in/second-factor/", 302),
    Row("GET", "/sign-in/again/", 403, {"nobody": 302}),
    Row("GET", "/sign-in/again/code/", 403, {"nobody": 302}),
    # The cast has no passwords, so its second factor is elsewhere; tests/principals/test_second_factor.py has one.
    *(
        Row("GET", f"/account/second-factor/{page}", 403, {"nobody": 302})
        for page in ("", "app/", "app/remove/", "codes/", "codes/new/", "codes.txt")
    ),
    signed_in("GET", "/login/device/"),
    Row("POST", "/login/device/", 422, {"nobody": 302, "auditor": 403}),
    Row("POST", "/theme/", 400),
    Row("GET", "/dev/components/", 404),
    Row("GET", "/dev/components/figure/{slug}/", 404),
    signed_in("GET", "/aup/"),
    signed_in("GET", "/aup/versions/{aup}/"),
    # It names no version, so the newest is another: the door is open, and nothing is accepted.
    Row("POST", "/aup/accept/", 409, {"nobody": 302, "auditor": 403}),
    signed_in("GET", "/aup/compliance/"),
    Row("GET", "/.well-known/agent-policy.json", 200),
    Row("GET", "/aup/acceptances.csv", 200, {"nobody": 302, "colleague": 403}),
    Row("GET", "/aup/drafts/new/", 403, {"nobody": 302, "staff": 200}),
    Row("POST", "/aup/drafts/new/", 403, {"nobody": 302, "staff": 422}),
    Row("GET", "/aup/drafts/{aup_draft}/", 403, {"nobody": 302, "staff": 200}),
    Row("POST", "/aup/drafts/{aup_draft}/", 403, {"nobody": 302, "staff": 422}),
    Row("POST", "/aup/drafts/{aup_draft}/publish/", 403, {"nobody": 302, "staff": 409}),
    Row("POST", "/aup/drafts/{aup_draft}/drop/", 403, {"nobody": 302, "staff": 409}),
    signed_in("GET", "/agents/"),
    signed_in("GET", "/agents/{agent}/", outsider=404),
    for_the_lab("POST", "/agents/{agent}/approve/", 409, staff=409, infosec=403, member=403),
    for_the_lab("POST", "/agents/{agent}/accept-aup/", 409, staff=403),
    reason_first("/agents/{agent}/suspend/"),
    reason_first("/agents/{agent}/resume/"),
    reason_first("/agents/{agent}/retire/"),
    reason_first("/agents/{agent}/renew/"),
    # No agent is named; tests/dashboard/test_claim_pages.py names one.
    Row("POST", "/sessions/{unregistered_session}/claim/", 404, {"nobody": 302, "auditor": 403}),
    for_the_lab("POST", "/agents/{agent}/claims/{claim}/undo/", 404, staff=404),
    for_the_lab("POST", "/agents/{agent}/hand-over/", 422, staff=422, infosec=403),
    for_the_lab("POST", "/agents/{agent}/hand-over/{handover}/", 404, staff=404),
    Row("GET", "/kill-switch/", 403, {"nobody": 302, "staff": 200, "infosec": 200, "auditor": 200}),
    Row("POST", "/kill-switch/", 403, {"nobody": 302, "staff": 422, "infosec": 422}),
    Row("GET", "/kill-switch/{switch}/", 403, {"nobody": 302, "staff": 200, "infosec": 200, "auditor": 200}),
    # InfoSec asked for it, staff agreed before InfoSec could (tests/principals/test_pull_kill_switch.py: it may not).
    Row("POST", "/kill-switch/{switch}/agree/", 403, {"nobody": 302, "staff": 302, "infosec": 409}),
    Row("POST", "/kill-switch/{switch}/withdraw/", 403, {"nobody": 302, "staff": 422, "infosec": 422}),
    Row("POST", "/kill-switch/{switch}/end/", 403, {"nobody": 302, "staff": 422, "infosec": 422}),
    for_the_lab("POST", "/agents/{agent}/tokens/", 422, staff=422),
    for_the_lab("POST", "/agents/{agent}/tokens/{key}/revoke/", 404, staff=404),
    for_the_lab("POST", "/agents/{agent}/tokens/{key}/rotate/", 404, staff=404),
    signed_in("GET", "/agents/{agent}/telemetry.json", outsider=404),
    # Its owner alone decides: to decline needs no word of the site's.
    Row("POST", "/agents/{agent}/telemetry/", 403, {"nobody": 302, "colleague": 302, "outsider": 404}),
    signed_in("GET", "/lessons/"),
    signed_in("GET", "/lessons/record/"),
    Row("POST", "/lessons/record/", 422, {"nobody": 302, "auditor": 403}),
    # A lesson of the cast's lab is its members' alone: staff run the facility and do not read labs' lessons.
    Row("GET", "/lessons/{lesson}/", 404, {"nobody": 302, "pi": 200, "manager": 200, "colleague": 200}),
    Row(
        "POST",
        "/lessons/{lesson}/",
        404,
        {"nobody": 302, "pi": 422, "manager": 422, "colleague": 422, "auditor": 403},
    ),
    signed_in("GET", "/my-lab/"),
    Row("GET", "/my-lab/{lab}/costs.json", 404, {"nobody": 302, "colleague": 403}),
    Row("GET", "/my-lab/{lab}/roll-over/", 404, {"nobody": 302, "pi": 200, "manager": 200, "colleague": 403}),
    Row(
        "POST",
        "/my-lab/{lab}/roll-over/",
        404,
        {"nobody": 302, "pi": 422, "manager": 422, "colleague": 403, "auditor": 403},
    ),
    # 422: the form's refusal (tests/dashboard/test_own_stops.py does the rest). A stop of another's is not found.
    Row(
        "POST", "/my-lab/{lab}/stop/", 404, {"nobody": 302, "pi": 422, "manager": 422, "colleague": 422, "auditor": 403}
    ),
    Row("POST", "/my-lab/{lab}/stop/{switch}/give-back/", 404, {"nobody": 302, "auditor": 403}),
    Row("GET", "/my-lab/{lab}/pass.html", 404, {"nobody": 302, "pi": 200, "manager": 200, "colleague": 200}),
    Row(
        "POST", "/my-lab/{lab}/rule/", 404, {"nobody": 302, "pi": 302, "manager": 403, "colleague": 403, "auditor": 403}
    ),
    Row(
        "POST",
        "/my-lab/{lab}/register/",
        404,
        {"nobody": 302, "pi": 422, "manager": 422, "colleague": 422, "auditor": 403},
    ),
    Row("GET", "/healthz", 200),
    Row("GET", "/favicon.ico", 302),
    *(
        Row("GET", path, 403, {"nobody": 302, "staff": found, "infosec": found, "auditor": found})
        for path, found in (("/overview/", 200), ("/overview/{table}.{kind}", 404))
    ),
    Row("GET", "/readyz", 200),
    Row("GET", "/metrics", 403, {"staff": 200}),
    signed_in("GET", "/incidents/"),
    Row("GET", "/incidents/{incident}/", 200, {"nobody": 302, "outsider": 404}),
    Row("POST", "/incidents/{incident}/", 403, {"nobody": 302, "outsider": 404, "infosec": 422}),
    signed_in("GET", "/reports/"),
    signed_in("GET", "/reports/{cluster}/{published_month}/"),
    Row("POST", "/reports/draft/", 403, {"nobody": 302, "staff": 404}),
    Row("POST", "/reports/{cluster}/{published_month}/approve/", 403, {"nobody": 302, "staff": 404}),
    Row("POST", "/reports/{cluster}/{published_month}/publish/", 403, {"nobody": 302, "staff": 404}),
    Row("POST", "/reports/{cluster}/{published_month}/withdraw/", 403, {"nobody": 302, "staff": 422}),
    Row("GET", "/", 302),  # to where the day of each begins; nobody's begins at the sign-in page
    signed_in("GET", "/search/?q=okafor"),
    signed_in("GET", "/webhooks/"),
    signed_in("GET", "/webhooks/new/"),
    Row("POST", "/webhooks/new/", 422, {"nobody": 302, "auditor": 403}),
    # A webhook is its owner's alone, the PI's here; not even staff see another's. The site of the tests allows no host.
    *(
        Row(method, f"/webhooks/{{webhook}}/{path}", 404, {"nobody": 302, "pi": pi} | writes)
        for method, writes, path, pi in (
            ("GET", {}, "", 200),
            ("GET", {}, "change/", 200),
            ("POST", {"auditor": 403}, "change/", 422),
            ("POST", {"auditor": 403}, "switch/", 422),
            ("POST", {"auditor": 403}, "test/", 409),
            ("POST", {"auditor": 403}, "roll/", 200),
            ("POST", {"auditor": 403}, "delete/", 302),
            ("POST", {"auditor": 403}, "dead/{dead_letter}/again/", 302),
            ("POST", {"auditor": 403}, "dead/{dead_letter}/drop/", 302),
        )
    ),
    signed_in("GET", "/held/"),
    signed_in("GET", "/held/download.json"),
    Row("POST", "/held/appeal/", 422, {"nobody": 302, "auditor": 403}),
    Row("GET", "/appeals/", 403, {"nobody": 302, "staff": 200, "infosec": 200, "auditor": 200}),
    # No decision: 422 says that the door is open.
    Row("POST", "/appeals/{appeal}/answer/", 403, {"nobody": 302, "staff": 422, "infosec": 422}),
    signed_in("GET", "/notices/"),
    signed_in("GET", "/notices/count.html"),
    Row("POST", "/notices/read/", 302, {"auditor": 403}),
    signed_in("GET", "/notices/choose/"),
    Row("POST", "/notices/choose/", 422, {"nobody": 302, "auditor": 403}),
    signed_in("GET", "/jobs/live/"),
    signed_in("GET", "/jobs/"),
    signed_in("GET", "/jobs/{job_pk}/", outsider=404),
    Row("GET", "/jobs/{cluster}/{job}/", 302, {"outsider": 404}),
    Row("GET", "/login-nodes/", 403, {"nobody": 302, "staff": 200, "auditor": 200}),
    Row("GET", "/ingest/", 403, {"nobody": 302, "staff": 200, "auditor": 200}),
    Row("POST", "/ingest/expected/", 403, {"nobody": 302, "staff": 422}),
    Row("GET", "/ingest/batches/{batch}/", 403, {"nobody": 302, "staff": 200, "auditor": 200}),
    Row("POST", "/ingest/batches/{batch}/retry/", 403, {"nobody": 302, "staff": 409}),  # it waits for a worker
    signed_in("GET", "/audit/"),
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
    signed_in("GET", "/extensions/submit/", auditor=403),
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
    # An agent of the outsider's lab has a login name too; tests/portal/test_check_in.py has the rest.
    Row(
        "POST",
        "/api/v1/sessions",
        201,
        {"none": 401, "service": 403},
        {"harness": "claude-code", "host": "login01", "pid": 7},
    ),
    Row("GET", "/api/v1/sessions", 200, {"none": 401, "service": 403}),
    *(
        Row("POST", f"/api/v1/sessions/{{check_in}}/{verb}", 404, {"none": 401, "service": 403, "agent": 200})
        for verb in ("heartbeat", "end")
    ),
    # Off: tests/principals/test_login_by_munge.py switches it on. How a token is got asks for none.
    Row("GET", "/api/v1/login/munge", 409),
    Row("POST", "/api/v1/login/munge", 409, {}, {"credential": "MUNGE:x:"}),
    Row("POST", "/api/v1/login/device", 422, {}, {"client_id": "sent as a form"}),
    Row("POST", "/api/v1/login/token", 422),
    Row("POST", "/api/v1/token/rotate", 200, {"none": 401, "service": 403}),
    Row(
        "POST",
        "/api/v1/token/delegate",
        200,
        {"none": 401, "service": 403},
        {"name": "reviewer", "scopes": ["me:read"]},
    ),
    Row("POST", "/api/v1/token/revoke", 200, {"none": 401, "service": 403}),
    # 422 for a harness that nobody knows: so nothing is made, and no role asks for a name that the one before took.
    Row(
        "POST",
        "/api/v1/agents",
        422,
        {"none": 401, "service": 403},
        {"name": "helper", "harness": "skynet", "purpose": "p", "expires": "2027-01-01T00:00:00Z"},
    ),
    Row("GET", "/api/v1/events", 200, {"none": 401, "service": 403}),
    Row("GET", "/api/v1/events/stream", 200, {"none": 401, "service": 403}),
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
    # An empty body: 422 says that the door is open. Batches are their sender's.
    Row("POST", "/api/v1/ingest/jobs?cluster=aster", 403, {"none": 401, "service": 422}, " "),
    Row("GET", "/api/v1/ingest/batches/{batch}", 403, {"none": 401, "service": 404}),
    Row("GET", "/api/v1/ingest/batches/{batch}/quarantine", 403, {"none": 401, "service": 404}),
    Row(
        "POST",
        "/api/v1/ingest/sessions",
        403,
        {"none": 401, "service": 200},
        {"cluster": "aster", "sessions": [{"host": "login01", "user": "colleague", "start": "2026-07-01T00:00:00Z"}]},
    ),
    Row(
        "POST",
        "/api/v1/ingest/gpu-utilisation",
        403,
        {"none": 401, "service": 200},
        {
            "cluster": "aster",
            "rows": [
                {"job": 1, "gpu": "g1:0", "compute_percent": 5, "memory_percent": 5, "measured": "2026-07-01T00:00:00Z"}
            ],
        },
    ),
    # Unsigned: 422 says that the door is open; tests/telemetry/test_ingest_activity_api.py signs.
    Row("POST", "/api/v1/ingest/activity", 403, {"none": 401, "service": 422}, {"cluster": "aster"}),
    Row("POST", "/api/v1/ingest/slurm-events", 403, {"none": 401, "service": 422}, {"cluster": "aster"}),
    # The site takes none unless it says so: tests/telemetry/test_harness_telemetry.py opens the door.
    *(Row("POST", f"/api/v1/otlp/v1/{signal}", 403, {"none": 401}, {}) for signal in ("metrics", "logs", "traces")),
    Row("GET", "/api/v1/otlp/days", 200, {"none": 401, "service": 403}),
    Row("GET", "/api/v1/jobs", 403, {"none": 401, "agent": 200, "foreign_agent": 200}),
    Row("POST", "/api/v1/jobs/receipts", 403, {"none": 401, "agent": 200, "foreign_agent": 200}),
    Row("GET", "/api/v1/jobs/standing?ids=1", 403, {"none": 401, "agent": 200, "foreign_agent": 200}),
    Row("GET", "/api/v1/jobs/{cluster}/{job}", 403, {"none": 401, "agent": 200, "foreign_agent": 404}),
    # Whose queue is not kept is told so: tests/telemetry/test_slurm_api.py keeps one.
    Row("GET", "/api/v1/slurm/squeue", 409, {"none": 401, "service": 403}),
    Row("GET", "/api/v1/slurm/sacct?login=nobody", 403, {"none": 401}),
    Row("GET", "/api/v1/slurm/sources", 200, {"none": 401, "service": 403}),
    Row(
        "POST",
        "/api/v1/slurm/shared-calls",
        409,
        {"none": 401, "service": 403},
        {"program": "squeue", "login": "colleague"},
    ),
    Row("GET", "/api/v1/lessons?text=oom", 200, {"none": 401, "service": 403}),
    Row("POST", "/api/v1/lessons/look-up", 200, {"none": 401, "service": 403}, {"text": "oom"}),
    Row(
        "POST",
        "/api/v1/lessons",
        201,
        {"none": 401, "service": 403},
        {"error_text": "Out Of Memory", "cause": "too little", "fix": "more"},
    ),
    Row("GET", "/api/v1/lessons/{lesson}", 404, {"none": 401, "service": 403, "agent": 200}),
    Row("POST", "/api/v1/lessons/{lesson}/evidence", 404, {"none": 401, "service": 403, "agent": 200}, {"holds": True}),
    Row("POST", "/api/v1/trials", 201, {"none": 401, "service": 403}, {"minutes": 5}),
    Row("GET", "/api/v1/site/agents.md", 200, {"none": 401, "service": 403}),
    Row("POST", "/api/v1/site/data-gate", 200, {"none": 401, "service": 403}, {"path": "/secure/x"}),
    Row("GET", "/api/v1/trials", 200, {"none": 401, "service": 403}),
    Row("GET", "/api/v1/trials/budget", 200, {"none": 401, "service": 403}),
    Row("GET", "/api/v1/trials/{trial}", 200, {"none": 401, "foreign_agent": 404, "service": 403}),
    Row("POST", "/api/v1/trials/{trial}/cancel", 200, {"none": 401, "foreign_agent": 404, "service": 403}),
    Row("GET", "/api/v1/extensions", 200, {"none": 401, "service": 403}),
    Row("POST", "/api/v1/extensions", 422, {"none": 401, "service": 403}),
    Row("GET", "/api/v1/extensions/{agents_extension}", 200, {"none": 401, "foreign_agent": 404, "service": 403}),
]
