"""Where the agents of the generator work. All of it is ours: the published measurement looked at login nodes alone."""

from collections.abc import Mapping
from typing import Final

LOGIN, JOB, SSH, GATEWAY, AGENT_HOST = "login", "job", "ssh", "gateway", "agent_host"
PLACES: Final = (LOGIN, JOB, SSH, GATEWAY, AGENT_HOST)
# Of agent users, each of whom has the sessions of all harnesses at one place.
PEOPLE: Final[Mapping[str, float]] = {LOGIN: 0.52, JOB: 0.18, SSH: 0.12, AGENT_HOST: 0.18}
AGENT_HOSTS: Final = 3
NODES: Final = 900  # on which jobs run
FIRST_JOB: Final = 30_000_000  # raw id of a job that a session runs in: before those of accounting
UNKNOWN_A_WATCH: Final = 60  # commands of a node that nobody is known to drive, fewer than that, at each place
AT_GATEWAYS: Final = 0.25  # of agent users, those who work through a gateway too
VISITS: Final = 4  # of them each at most: so many stretches of requests
GATEWAYS: Final = {"ondemand": "ood", "firecrest": "firecrest"}  # kind: host
USER_AGENTS: Final = {
    "claude-code": "claude-cli/2.1.7 (external, cli)", "codex": "codex_cli_rs/0.55.0 (Ubuntu 24.4.0; x86_64)",
    "cursor": "Cursor/1.7.44 (linux x64)", "copilot": "GitHubCopilotChat/0.26.7",
}  # fmt: skip
BROWSER: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
PROGRAM: Final = "python-requests/2.32.3"
