"""What this machine has: tests that need more are skipped, in one line, or fail under REQUIRE_ALL=1."""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED_DATA = Path(os.environ.get("GATEHOUSE_SHARED_DATA", ROOT.parent / "shared" / "data"))
CHROMIUM = Path("/usr/bin/chromium")

CAPABILITIES = {
    "postgres": bool(os.environ.get("TEST_DATABASE_URL")),
    "redis": bool(os.environ.get("TEST_REDIS_URL")),
    "browser": CHROMIUM.exists(),
    "shared_data": SHARED_DATA.is_dir(),
    "slurm": bool(shutil.which("slurmctld")),
}
WORDS = {
    "postgres": "PostgreSQL",
    "redis": "Redis",
    "browser": "Chromium",
    "shared_data": "../shared/data",
    "slurm": "Slurm",
}
missing: Counter[str] = Counter()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what the machine cannot run; mark what touches SQL, so that PostgreSQL repeats just that."""
    for item in items:
        for name, present in CAPABILITIES.items():
            if not present and item.get_closest_marker(name):
                missing[name] += 1
                item.add_marker(pytest.mark.skip(reason=f"{WORDS[name]} is missing here"))
        touches_sql = item.get_closest_marker("django_db") or "db" in getattr(item, "fixturenames", ())
        apart = any(item.get_closest_marker(name) for name in ("browser", "redis", "slurm", "one_database"))
        if touches_sql and not apart:
            item.add_marker(pytest.mark.sql)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what was left out for want of what."""
    skipped = Counter[str]()
    for report in terminalreporter.stats.get("skipped", []):
        for name, word in WORDS.items():
            if f"{word} is missing here" in str(report.longrepr):
                skipped[name] += 1
    if skipped:
        parts = ", ".join(f"{count} need {WORDS[name]}" for name, count in sorted(skipped.items()))
        terminalreporter.write_line(f"Left out for want of what they need: {parts}.", yellow=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under REQUIRE_ALL=1 a missing capability is a failure."""
    if missing and os.environ.get("REQUIRE_ALL") == "1":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
