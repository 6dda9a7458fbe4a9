"""A wheel of the project holds what `gatehouse assess` needs: it draws its report far from any checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.telemetry.engine.sacct_texts import many_rows

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("portal", "principals", "telemetry", "policies", "memory", "security")
WHOLE = (*PACKAGES, "templates")
LOOSE = ("pyproject.toml", "README.md", "LICENSE")

pytestmark = pytest.mark.skipif(
    int(version("setuptools").split(".")[0]) < 77, reason="setuptools 77 and newer builds the wheel"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from a copy: a build leaves folders behind."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in WHOLE:
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in LOOSE:
        shutil.copy(ROOT / name, source)
    code = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, built], cwd=source, check=True, capture_output=True, timeout=300)
    return next(built.glob("*.whl"))


def test_a_wheel_holds_every_template_style_and_table_of_the_checkout(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    kinds = (".html", ".css", ".js", ".svg", ".toml", ".py")
    own = {
        str(path.relative_to(ROOT)) for name in PACKAGES for path in (ROOT / name).rglob("*") if path.suffix in kinds
    }
    templates = {f"portal/{path.relative_to(ROOT)}" for path in (ROOT / "templates").rglob("*.html")}
    assert len(templates) > 50
    assert (own | templates) - held == set()


def test_a_wheel_brings_no_folder_that_is_not_of_its_packages(wheel: Path) -> None:
    held = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in held if not name.endswith(".dist-info")} == set(PACKAGES)


def test_assess_draws_its_report_from_a_wheel(wheel: Path, tmp_path: Path) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    zipfile.ZipFile(wheel).extractall(site)
    work.mkdir()
    (work / "july.txt").write_bytes(b"".join(many_rows(300)))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "GATEHOUSE"))}
    code = (
        "import sys, portal.cli.main as main; assert main.__file__.startswith(sys.argv[1]), main.__file__\n"
        "sys.exit(main.main(['assess', 'july.txt']))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, site], cwd=work, env=environment | {"PYTHONPATH": str(site)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "Wrote report.html.\n")
    assert (work / "report.html").read_text().lstrip().startswith("<!doctype html>")
    assert sorted(path.name for path in work.iterdir()) == ["july.txt", "report.html"]
