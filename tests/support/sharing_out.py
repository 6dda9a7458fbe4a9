"""How pytest-xdist shares tests out among its workers: what starts something costly together stays together.

`xdist_group` would say the same on the tests, but what pytest-xdist 3.8 appends to a test's id for it is lost on
pytest 9.2, so every worker started every browser, portal and facility.
"""

from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

# Files whose fixtures start a browser, a portal in processes of its own, or a whole facility.
TOGETHER: Final = (
    "tests/e2e/", "tests/run/", "tests/realtime/test_serve.py", "tests/portal/test_simulate.py",
    "tests/reports/test_recover_planted.py",
)  # fmt: skip
# A collector hears all processes of its machine: no two tests of one run beside each other.
ALONE: Final = "tests/collector/"
# The walk over every page takes longest of all: one worker walks as staff, another as the rest.
APART: Final = "tests/e2e/test_every_page.py"


def unit_of(nodeid: str) -> str:
    """Return the name of the unit that a test belongs to: all of one unit run in one worker, one after the other."""
    file, _, name = nodeid.partition("::")
    if file.startswith(ALONE):
        return ALONE
    if file == APART:
        return f"{file} as {'staff' if '[staff-' in name else 'others'}"
    return file if file.startswith(TOGETHER) else nodeid


class Scheduling(LoadScopeScheduling):
    """Units as `unit_of` says, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share out by unit where tests are shared out by load at all."""
    return Scheduling(config, log) if config.getvalue("dist") == "load" else None
