"""Templates are formatted by djade, compile, and hold no inline style, script or handler."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import get_template

ROOT = Path(settings.BASE_DIR) / "templates"
NAMES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.html"))
TAG = re.compile(r"{%.*?%}")
INLINE = re.compile(r"\sstyle=|<script(?![^>]*\ssrc=)|\son[a-z]+=|javascript:", re.IGNORECASE)


@pytest.mark.parametrize("name", NAMES)
def test_a_template_compiles(name):
    get_template(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_template_holds_nothing_inline(name):
    text = TAG.sub("", (ROOT / name).read_text())
    assert not INLINE.search(text)


def test_templates_are_formatted():
    djade = Path(sys.executable).with_name("djade")
    files = [str(ROOT / name) for name in NAMES]
    found = subprocess.run(
        [djade, "--target-version", "5.2", "--check", *files], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_no_number_stands_before_a_noun_that_is_always_plural() -> None:
    nouns = "core|point|record|reading|job|agent|GPU|node|session|row|event|lab|token|trial|task|minute|time|source"
    fixed = re.compile(r"\{\{ (?!most\|)[^}]*\}\} (" + nouns + r")s\b")
    # These stand where the number is above one.
    above_one = {"job.array_tasks|count }} tasks"}
    found = [
        f"{name}: {hit[0]}"
        for name in NAMES if not name.startswith(("reports/", "dev/"))
        for hit in fixed.finditer((ROOT / name).read_text()) if not any(each in hit[0] for each in above_one)
    ]  # fmt: skip
    assert not found, 'write {{ number|counted:"core" }}'
