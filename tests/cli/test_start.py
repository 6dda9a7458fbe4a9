"""The `gatehouse` command on a login node: light, standard library alone."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
_LIST = """
import io, json, sys
sys.stdout = io.StringIO()
from portal.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    status = end.code
sys.stdout = sys.__stdout__
print(json.dumps([status, sorted(sys.modules)]))
"""


def modules_of(*arguments: str) -> tuple[int, list[str]]:
    """The exit status of a command line, and every module it loaded."""
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{_LIST}", *arguments],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    status, names = json.loads(ran.stdout)
    return status, names


def test_help_loads_the_standard_library_and_its_own_package_alone():
    status, names = modules_of("--help")
    assert status == 0
    tops = {name.partition(".")[0] for name in names}
    own = {"portal"}
    foreign = tops - own - set(sys.stdlib_module_names) - {"__main__", "__mp_main__"}
    assert foreign == set()
    assert {name for name in names if name.startswith("portal.")} <= {
        "portal.cli", "portal.cli.main", "portal.cli.me", "portal.cli.assess", "portal.cli.client",
        "portal.cli.collect", "portal.cli.files", "portal.cli.output", "portal.cli.progress",
        "portal.cli.receipt", "portal.cli.doctor", "portal.cli.eventd", "portal.cli.wait", "portal.cli.login",
        "portal.cli.init", "portal.cli.verify", "portal.cli.checkin", "portal.cli.check_data",
    }  # fmt: skip


def test_help_opens_no_network_library():
    _, names = modules_of("--help")
    heavy = {"ssl", "http.client", "urllib.request", "asyncio", "sqlite3", "email.parser"}
    assert heavy.isdisjoint(names)


def test_an_unknown_command_is_told_in_argparse_s_words():
    ran = subprocess.run(
        [sys.executable, "-m", "portal.cli.main", "fly"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert "invalid choice: 'fly'" in ran.stderr
    assert "Traceback" not in ran.stderr
