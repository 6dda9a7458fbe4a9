"""What collectors of these tests send to, and where they keep what waits."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.test_run import Portal


@pytest.fixture
def portal() -> Iterator[Portal]:
    made = Portal()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that also an account without rights may use."""
    path = Path(tempfile.mkdtemp(prefix="gatehouse-collect-"))
    path.chmod(0o755)
    spool = path / "spool"
    spool.mkdir()
    spool.chmod(0o777)
    yield path
    shutil.rmtree(path)
