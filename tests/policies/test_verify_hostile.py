"""`gatehouse verify` and `export_policy` over folders in which somebody put more than a policy."""

from pathlib import Path

import pytest

from portal.cli.main import main
from tests.policies.test_export_policy import _export, folder, keys

__all__ = ["folder", "keys"]
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "name", ["skills/site-policy/run.sh", "skills/other/SKILL.md", "claude-code/settings.json", "skills/.hidden"]
)
def test_a_file_that_is_not_signed_is_refused(folder: Path, keys, capsys, name: str) -> None:
    private, public = keys
    _export(folder, "--sign-key", private)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("echo no\n")
    assert main(["verify", str(folder), "--key", str(public)]) == 1
    assert "[file_unsigned]" in capsys.readouterr().err


def test_a_link_in_its_folders_is_refused_whatever_it_shows(folder: Path, keys, tmp_path: Path, capsys) -> None:
    private, public = keys
    _export(folder, "--sign-key", private)
    file = folder / "skills/site-policy/SKILL.md"
    file.rename(tmp_path / "moved")
    file.symlink_to(tmp_path / "moved")
    assert main(["verify", str(folder), "--key", str(public)]) == 1
    assert "[file_unsigned]" in capsys.readouterr().err


def test_a_state_of_endless_digits_is_a_sentence(folder: Path, keys, tmp_path: Path, capsys) -> None:
    private, public = keys
    _export(folder, "--sign-key", private)
    state = tmp_path / "state"
    state.write_text("9" * 5000)
    assert main(["verify", str(folder), "--key", str(public), "--state", str(state)]) == 1
    assert "[state_form]" in capsys.readouterr().err


def test_an_export_follows_no_link_of_a_half_written_file(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (folder / ".AGENTS.md.new").symlink_to(victim)
    _export(folder)
    assert victim.read_text() == "mine"
    assert "Rules of this cluster" in (folder / "AGENTS.md").read_text()
