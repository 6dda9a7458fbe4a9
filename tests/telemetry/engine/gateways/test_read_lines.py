"""Lines of gateways' logs as their programs write them, and what is read of each."""

import tomllib
from importlib.resources import files
from zoneinfo import ZoneInfo

import pytest

from principals.engine.harnesses import known_harnesses
from telemetry.engine.gateways import Client, Passed, Request, Unread, client_of, read_line
from telemetry.engine.gateways.chains import GAP_S, Chain, chain

ZONE = ZoneInfo("Europe/Zurich")
NOON_S = 1_783_418_400  # 2026-07-07 10:00:00 UTC
CLAUDE = Client("agent", "claude-code")
APPS = "/pun/sys/dashboard/batch_connect/sys/bc_jupyter/session_contexts"
TRACING = (
    '{"asctime": "2026-07-07 12:00:00,598", "levelname": "INFO", "name": "f7t_v2_tracing_log", "message": "", '
    '"username": "ada", "system_name": "aster", "endpoint": "%s", "resource": "compute", "status_code": %d, '
    '"user_agent": "claude-cli/2.1"}'
)


def combined(
    request: str, *, user: str = "ada", status: int = 200, agent: str = "claude-cli/2.1 (external, cli)"
) -> str:
    return f'10.0.0.1 - {user} [07/Jul/2026:12:00:00 +0200] "{request}" {status} 9 "https://ood/" "{agent}"'


@pytest.mark.parametrize(
    ("kind", "line", "read"),
    [
        ("ondemand", combined(f"POST {APPS}?x=1 HTTP/1.1", status=302), Request(NOON_S, "ada", CLAUDE, "submission")),
        ("ondemand", combined(f"POST {APPS} HTTP/1.1", status=422), Request(NOON_S, "ada", CLAUDE, "")),
        ("ondemand", combined(f"GET {APPS} HTTP/1.1"), Request(NOON_S, "ada", CLAUDE, "")),
        ("ondemand", combined("PUT /pun/sys/dashboard/files/fs/home/ada/x.sh HTTP/2.0"),
         Request(NOON_S, "ada", CLAUDE, "transfer")),
        ("ondemand", combined("GET / HTTP/1.1", agent="Mozilla/5.0 (X11) Gecko/1 Firefox/1"),
         Request(NOON_S, "ada", Client("human"), "")),
        ("ondemand", "ood:443 " + combined("GET / HTTP/1.1", agent="curl/8.5"),
         Request(NOON_S, "ada", Client("unknown"), "")),
        ("ondemand", combined("GET / HTTP/1.1").rsplit(' "', 2)[0], Request(NOON_S, "ada", Client("unknown"), "")),
        ("ondemand", combined("GET / HTTP/1.1", user="-"), Passed("no_user")),
        ("ondemand", combined(r"\x16\x03\x01", user="ada", status=400), Request(NOON_S, "ada", CLAUDE, "")),
        ("ondemand",
         '[Tue Jul 07 12:00:00.1 2026] [lua:info] [pid 1] log_hook="ood" log_time="2026-07-07T10:00:00.1234.0Z" '
         'local_user="ada" remote_user="ada@site.edu" req_method="POST" req_status="302" '
         f'req_uri="{APPS}" req_user_agent="claude-cli/2.1"', Request(NOON_S, "ada", CLAUDE, "submission")),
        ("ondemand",
         '{"time_iso8601":"2026-07-07T12:00:00+02:00","remote_user":"ada","request":"GET /pun HTTP/1.1",'
         '"status":200,"http_user_agent":"claude-cli/2.1"}', Request(NOON_S, "ada", CLAUDE, "")),
        ("jupyterhub",
         "[I 2026-07-07 12:00:00.123 JupyterHub log:192] 201 POST /hub/api/users/ada/server (ada@10.0.0.1) 12.31ms",
         Request(NOON_S, "ada", Client("unknown"), "submission")),
        ("jupyterhub",
         "[I 2026-07-07 12:00:00.123 JupyterHub log:192] 302 GET /hub → /hub/home (ada@x.edu@10.0.0.1) 1.02ms",
         Request(NOON_S, "ada@x.edu", Client("unknown"), "")),
        ("jupyterhub", "[I 2026-07-07 12:00:00.123 JupyterHub log:192] 302 GET / → /hub/ (@10.0.0.1) 1ms",
         Passed("no_user")),
        ("jupyterhub", "[W 2026-07-07 12:00:00.123 JupyterHub base:1349] Failing suspected API request",
         Passed("not_a_request")),
        ("jupyterhub", '      "Authorization": "token [secret]",', Passed("continuation")),
        ("jupyterhub", combined("POST /jupyter/hub/api/users/ada/servers/gpu HTTP/1.1", user="-", status=201),
         Request(NOON_S, "ada", CLAUDE, "submission")),
        ("jupyterhub", combined("GET /user/ada/api/contents HTTP/1.1", user="-", status=403), Passed("no_user")),
        # Somebody who is not signed in is sent away with 302: the name in the path is not theirs.
        ("jupyterhub", combined("GET /user/ada/lab HTTP/1.1", user="-", status=302), Passed("no_user")),
        ("jupyterhub", combined("GET /user/ada/static/style.css HTTP/1.1", user="-"), Passed("no_user")),
        ("jupyterhub", combined("GET /user/ada/api HTTP/1.1", user="-"), Passed("no_user")),
        ("jupyterhub", combined("PUT /user/ada/api/contents/x HTTP/1.1", user="-", status=201),
         Request(NOON_S, "ada", CLAUDE, "transfer")),
        ("ondemand", combined("GET /pun HTTP/1.1", status=401), Passed("not_signed_in")),
        ("firecrest", TRACING % ("/compute/aster/jobs", 401), Passed("not_signed_in")),
        ("firecrest", combined("POST /compute/jobs/upload HTTP/1.1", agent="claude-cli/2 {odd}"),
         Request(NOON_S, "ada", CLAUDE, "submission")),
        ("firecrest", TRACING % ("/compute/aster/jobs", 201), Request(NOON_S, "ada", CLAUDE, "submission", "aster")),
        ("firecrest", TRACING % ("/compute/aster/jobs", 200), Request(NOON_S, "ada", CLAUDE, "", "aster")),
        ("firecrest", "firecrest-1 | " + TRACING % ("/filesystem/aster/ops/upload", 204),
         Request(NOON_S, "ada", CLAUDE, "transfer", "aster")),
        ("firecrest",
         "2026-07-07 12:00:00,908 - f7t_v2_tracing_log - INFO - {'username': 'ada', 'endpoint': '/status/systems', "
         "'status_code': 200, 'user_agent': 'claude-cli/2.1'}", Request(NOON_S, "ada", CLAUDE, "")),
        ("firecrest",
         '{"asctime": "2026-07-07 12:00:00,598", "name": "f7t_v2_tracing_log", "message": "Responding: /compute/aster/'
         'jobs", "username": "ada", "endpoint": "/compute/aster/jobs", "http_request_method": "POST", '
         '"http_response_status_code": 201, "user_agent": "claude-cli/2.1"}',
         Request(NOON_S, "ada", CLAUDE, "submission")),
        ("firecrest", '{"name": "f7t_v2_tracing_log", "message": "Requesting: /compute/aster/jobs"}', Passed("begun")),
        ("firecrest",
         '{"started_at": 1783418400123, "request": {"method": "POST", "uri": "/compute/jobs/upload", "headers": '
         '{"user-agent": "claude-cli/2.1"}}, "response": {"status": 200}, "consumer": {"username": "ada"}}',
         Request(NOON_S, "ada", CLAUDE, "submission")),
        ("firecrest", '2026-07-07 12:00:00 - uvicorn.access - INFO - 10.0.0.1 - "GET / HTTP/1.1" 200',
         Passed("other_log")),
    ],
)  # fmt: skip
def test_a_line_is_read(kind: str, line: str, read: object) -> None:
    assert read_line(kind, line + "\n", zone=ZONE) == read


@pytest.mark.parametrize(
    ("kind", "line", "reason"),
    [
        ("ondemand", "nothing that a server writes", "form"),
        ("ondemand", combined("GET / HTTP/1.1").replace("Jul", "Xxx"), "time"),
        ("ondemand", combined("GET / HTTP/1.1").replace("07/Jul", "31/Feb"), "time"),
        ("ondemand", '{"status": 200', "json"),
        ("ondemand", "[" * 20_000, "too_long"),
        ("ondemand", '{"time": "never", "remote_user": "ada", "status": 200}', "time"),
        ("ondemand", '{"time": "2026-07-07T12:00:00Z", "remote_user": "ada", "status": "fine"}', "status"),
        ("firecrest", "f7t_v2_tracing_log {'a': __import__('os')}", "json"),
        ("firecrest", '{"endpoint": "/x", "status_code": 200, "username": "ada"}', "time"),
        ("firecrest", '{"request": {}, "started_at": 99999999999999999999}', "time"),
    ],
)
def test_a_line_that_cannot_be_read_says_why(kind: str, line: str, reason: str) -> None:
    assert read_line(kind, line, zone=ZONE) == Unread(reason)


@pytest.mark.parametrize(
    ("user_agent", "client"),
    [
        ("claude-cli/1.0.119 (external, cli)", CLAUDE),
        ("Claude-User (claude-code/2.1.7; +https://support.anthropic.com/)", CLAUDE),
        ("codex_cli_rs/0.55.0 (Ubuntu 24.4.0; x86_64) xterm-256color", Client("agent", "codex")),
        ("Mozilla/5.0 (X11) AppleWebKit/5 (KHTML) Cursor/1.2 Chrome/1 Electron/3", Client("agent", "cursor")),
        ("GitHubCopilotChat/0.26.7", Client("agent", "copilot")),
        ("GeminiCLI/0.9.0/gemini-2.5-pro (linux; x64)", Client("agent", "gemini-cli")),
        ("glab/v1.98.0 (linux, amd64) Coding-Agent/opencode", Client("agent", "opencode")),
        ("mcp-remote/0.1.29", Client("agent")),
        ("python-requests/2.32.3", Client("unknown")),
        ("Mozilla/5.0 (X11) AppleWebKit/5 (KHTML, like Gecko) HeadlessChrome/126.0", Client("unknown")),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", Client("human")),
        ("Mozilla/5.0 (about codex and claude) Firefox/140.0", Client("human")),
        ("", Client("unknown")),
        ("somethingnew/1.0", Client("unknown")),
    ],
)  # fmt: skip
def test_a_user_agent_names_an_agent_a_browser_or_nobody(user_agent: str, client: Client) -> None:
    assert client_of(user_agent) == client


def test_requests_no_more_than_half_an_hour_apart_are_a_session() -> None:
    assert chain([0, GAP_S, GAP_S, 2 * GAP_S + 1]) == [
        Chain(0, GAP_S, is_told=True), Chain(2 * GAP_S + 1, 2 * GAP_S + 1, is_told=True)
    ]  # fmt: skip


def test_a_request_between_two_known_sessions_joins_them_and_those_further_off_stay() -> None:
    known = [(1, 0, 100), (2, 100 + 2 * GAP_S, 9000), (3, 90_000, 90_001)]
    assert chain([100 + GAP_S], known) == [Chain(0, 9000, [1, 2], is_told=True)]


def test_every_harness_of_the_list_is_one_that_the_portal_knows() -> None:
    """Its sessions are recorded as they are: nothing behind it asks again."""
    listed = tomllib.loads(files("telemetry.engine.gateways").joinpath("agents.toml").read_text())
    assert listed["harness"].keys() <= known_harnesses().keys()
