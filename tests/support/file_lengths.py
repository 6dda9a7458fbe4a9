"""Fail where a Python file has grown past its limit: 400 lines, 600 for tests (migrations are free)."""

import subprocess
import sys
from pathlib import Path

LIMIT, TEST_LIMIT = 400, 600


def too_long() -> list[str]:
    """Return one line for each file past its limit."""
    listed = subprocess.run(["git", "ls-files", "*.py"], capture_output=True, text=True, check=True).stdout.split()
    found = []
    for name in listed:
        path = Path(name)
        if "migrations" in path.parts or not path.exists():
            continue
        limit = TEST_LIMIT if path.parts[0] == "tests" else LIMIT
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > limit:
            found.append(f"{name}: {lines} lines, at most {limit}")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(too_long()) or 0)
