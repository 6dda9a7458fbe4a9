"""`gatehouse init` in a project that means no good: it writes nowhere else, waits for nothing, and loses no line."""

import os
import time
from pathlib import Path

import pytest

from portal.cli import init
from portal.cli.main import main
from tests.cli.test_init import OWN, rules

__all__ = ["rules"]
BLOCK = f"{init.BEGIN}: x -->\nours\n{init.END}\n"


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
def test_a_link_leads_nowhere_else(rules, tmp_path: Path, capsys, name: str) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.write_text(f"{OWN}\n{BLOCK}")
    (project / name).symlink_to(outside)
    for options in (["--claude"], ["--uninstall"]):
        assert main(["init", str(project), *options]) == 2
        assert "[link_outside]" in capsys.readouterr().err
    assert outside.read_text() == f"{OWN}\n{BLOCK}"
    assert (project / name).is_symlink()


def test_a_pipe_and_a_huge_file_are_left(rules, tmp_path: Path, capsys) -> None:
    file = tmp_path / "AGENTS.md"
    os.mkfifo(file)
    assert main(["init", str(tmp_path)]) == 2
    file.unlink()
    with file.open("wb") as huge:
        huge.truncate(init.LARGEST_FILE + 1)
    assert main(["init", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("[file_kind]") == 2


def test_many_empty_lines_take_no_time(rules, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("a" + "\n" * 300_000 + "b\n")
    began = time.process_time()
    assert main(["init", str(tmp_path)]) == 0
    assert time.process_time() - began < 3


def test_lines_end_as_they_did(rules, tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    own = OWN.replace("\n", "\r\n").encode()
    file.write_bytes(own)
    assert main(["init", str(tmp_path)]) == 0
    written = file.read_bytes()
    assert written.startswith(own) and written.count(b"\n") == written.count(b"\r\n")
    assert main(["init", str(tmp_path)]) == 0
    assert file.read_bytes() == written
    assert main(["init", str(tmp_path), "--uninstall"]) == 0
    assert file.read_bytes() == own


@pytest.mark.parametrize(
    "text",
    [
        f"{BLOCK}\n{BLOCK}", f"{init.BEGIN} -->\nmine\n{BLOCK}", f"{BLOCK}\n{init.END}\n",
        f"{init.END}\nmine\n{init.BEGIN}\n",
    ],
    ids=["twice", "beginning alone", "end alone", "turned"],
)  # fmt: skip
def test_marks_that_stand_amiss_are_left_to_a_person(rules, tmp_path: Path, capsys, text: str) -> None:
    (tmp_path / "AGENTS.md").write_text(text)
    for options in ([], ["--uninstall"]):
        assert main(["init", str(tmp_path), *options]) == 2
        assert "[block_broken]" in capsys.readouterr().err
    assert (tmp_path / "AGENTS.md").read_text() == text
