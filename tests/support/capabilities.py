"""What this machine has: tests that need more are skipped, in one line, or fail under REQUIRE_ALL=1."""

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.support import slurm, sshd

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED_DATA = Path(os.environ.get("GATEHOUSE_SHARED_DATA", ROOT.parent / "shared" / "data"))
CHROMIUM = Path("/usr/bin/chromium")

CAPABILITIES = {
    "postgres": bool(os.environ.get("TEST_DATABASE_URL")),
    "redis": bool(os.environ.get("TEST_REDIS_URL")),
    "browser": CHROMIUM.exists(),
    "shared_data": SHARED_DATA.is_dir(),
    "slurm": not slurm.find_missing(),
    "munge": not os.geteuid() and all(map(slurm.find, ("munged", "munge", "unmunge", "faketime"))),
    "sshd": sshd.is_there(),
}
WORDS = {
    "postgres": "PostgreSQL",
    "redis": "Redis",
    "browser": "Chromium",
    "shared_data": "../shared/data",
    "slurm": "Slurm (as root)",
    "munge": "MUNGE and faketime (as root)",
    "sshd": "OpenSSH's server (as root, no other syslog)",
}
_IS_MISSING = "is missing here"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what the machine cannot run, and soaks unless they are asked for by name.

    Mark what touches SQL, so that PostgreSQL repeats just that.
    """
    asks_for_soaks = "soak" in config.getoption("markexpr")
    for item in items:
        if item.get_closest_marker("soak") and not asks_for_soaks:
            item.add_marker(pytest.mark.skip(reason="a soak takes up to an hour: run it with -m soak"))
        for name, present in CAPABILITIES.items():
            if not present and item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=f"{WORDS[name]} {_IS_MISSING}"))
        touches_sql = item.get_closest_marker("django_db") or "db" in getattr(item, "fixturenames", ())
        apart = any(item.get_closest_marker(name) for name in ("browser", "redis", "slurm", "outside", "one_database"))
        if touches_sql and not apart:
            item.add_marker(pytest.mark.sql)


def left_out(config: pytest.Config) -> Counter[str]:
    """Count the tests that were skipped for want of something, by what it is.

    Read from the reports: under pytest-xdist the process that sums up has collected nothing itself.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    found = Counter[str]()
    for report in reporter.stats.get("skipped", []) if reporter else []:
        found.update(word for word in WORDS.values() if f"{word} {_IS_MISSING}" in str(report.longrepr))
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what was left out for want of what."""
    if found := left_out(terminalreporter.config):
        parts = ", ".join(f"{count} need {word}" for word, count in sorted(found.items()))
        terminalreporter.write_line(f"Left out for want of what they need: {parts}.", yellow=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under REQUIRE_ALL=1 a missing capability is a failure."""
    if os.environ.get("REQUIRE_ALL") == "1" and left_out(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
