"""`gatehouse assess --out report.pdf`: the same report to print, drawn offline, or a sentence of what is missing."""

import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from portal.reports import pdf
from tests.cli.test_assess import ROOT, gatehouse
from tests.telemetry.engine.sacct_texts import many_rows

STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)


@pytest.fixture
def printer() -> None:
    try:
        pdf.load_printer()
    except pdf.CannotPrint as error:
        pytest.skip(error.detail)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "july.txt"
    path.write_bytes(b"".join(many_rows(400)))
    return path


def opened(printed: bytes) -> bytes:
    """A PDF with what was packed in it."""
    parts = []
    for packed in STREAM.findall(printed):
        try:
            parts.append(zlib.decompress(packed))
        except zlib.error:
            parts.append(packed)
    return b"\n".join([printed, *parts])


@pytest.mark.usefixtures("printer")
def test_a_name_that_ends_in_pdf_makes_one_and_another_makes_html(dump: Path, tmp_path: Path) -> None:
    ran = gatehouse("july.txt", "--cluster", "aster", "--out", "r.html", "--out", "r.PDF", cwd=tmp_path)
    assert (ran.returncode, ran.stderr.decode()) == (0, "Wrote r.html.\nWrote r.PDF.\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["july.txt", "r.PDF", "r.html"]
    assert (tmp_path / "r.html").read_text().lstrip().startswith("<!doctype html>")
    printed = (tmp_path / "r.PDF").read_bytes()
    assert printed.startswith(b"%PDF-") and printed.rstrip().endswith(b"%%EOF")
    said = opened(printed)
    assert len(re.findall(rb"/Type /Page\b(?!s)", said)) >= 4
    assert b"/StructTreeRoot" in said and b"/Lang" in said
    assert any(title in said for title in (b"First assessment", "First assessment · aster".encode("utf-16-be")))


@pytest.mark.usefixtures("printer")
def test_nothing_that_a_page_names_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    for address in ("http://127.0.0.1:1/x.png", (tmp_path / "secret.txt").as_uri()):
        printed = pdf.print_html(f'<!doctype html><html lang="en"><title>t</title><img alt="no" src="{address}">')
        assert b"/Subtype /Image" not in opened(printed)


@pytest.mark.parametrize(
    ("breaking", "detail", "remedy"),
    [
        ("None", "A PDF needs WeasyPrint, and weasyprint is missing.", "pip install '<checkout or wheel>[pdf]'"),
        ("Broken()", "A PDF needs Pango: cannot load library 'libpango'", "apt install libpango-1.0-0"),
    ],
)
def test_what_a_pdf_needs_is_told_before_anything_is_read(
    breaking: str, detail: str, remedy: str, tmp_path: Path
) -> None:
    code = (
        "import sys\n"
        "class Broken:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'weasyprint': raise OSError(\"cannot load library 'libpango'\")\n"
        f"broken = {breaking}\n"
        "if broken: sys.meta_path.insert(0, broken)\n"
        "else: sys.modules['weasyprint'] = None\n"
        "from portal.cli.main import main; sys.exit(main(['assess', 'absent', '--out', 'r.pdf']))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    first, second = ran.stderr.splitlines()
    assert first == f"gatehouse assess: {detail} [no_pdf]"
    assert remedy in second
    assert list(tmp_path.iterdir()) == []
