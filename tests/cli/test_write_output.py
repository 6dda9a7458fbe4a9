"""A command that cannot write, or has no database, ends in a sentence or in silence, never in a traceback."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from portal.cli.output import READER_GONE

ROOT = Path(__file__).resolve().parent.parent.parent
GATEHOUSE = ["-m", "portal.cli.main", "--help"]
MANAGE = ["manage.py", "usage", "--help"]


def ended(command: list[str], output: int) -> tuple[int, str]:
    """The status of a command and what it says on stderr, with its output going to a file descriptor."""
    # Unbuffered, argparse itself swallows the error of --help, which stands here for any output.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ran = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, stdout=output, stderr=subprocess.PIPE, text=True
    )
    return ran.returncode, ran.stderr


@pytest.mark.parametrize("command", [GATEHOUSE, MANAGE])
def test_a_reader_that_has_gone_ends_a_command_quietly(command: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert ended(command, writer) == (READER_GONE, "")
    finally:
        os.close(writer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("command", [GATEHOUSE, MANAGE])
def test_a_full_disk_is_one_clear_sentence(command: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        said = "Error: the output cannot be written: No space left on device.\n"
        assert ended(command, full.fileno()) == (1, said)


def test_a_database_that_does_not_answer_is_one_clear_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, and never listening
        taken.bind(("127.0.0.1", 0))
        url = f"postgres://somebody@127.0.0.1:{taken.getsockname()[1]}/gatehouse"
        ran = subprocess.run(
            [sys.executable, "manage.py", "usage", "--cluster", "aster"], cwd=ROOT, capture_output=True, text=True,
            env=os.environ | {"DATABASE_URL": url, "GATEHOUSE_DATA": str(tmp_path), "GATEHOUSE_PROFILE": "embedded"},
        )  # fmt: skip
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert ran.stderr.startswith("Error: the database failed: connection failed")
