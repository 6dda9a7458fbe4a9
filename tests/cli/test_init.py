"""`gatehouse init`: the rules go into a project once, follow the site, and come out again without a trace."""

import io
from contextlib import contextmanager
from pathlib import Path

import pytest

from portal.cli import client, init
from portal.cli.main import main

OWN = "# Our project\n\nRun `make test`.\n"


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the portal answers, without one: tests/e2e asks a real one."""
    told = {"text": "## Rules of this cluster\n\n- Be kind.\n"}

    @contextmanager
    def asking(path: str, *, timeout_s: float = 1):
        assert path == "/site/agents.md"
        yield io.BytesIO(told["text"].encode())

    monkeypatch.setattr(init.client, "asking", asking)
    return told


def test_it_writes_a_block_and_leaves_the_rest(rules, tmp_path: Path, capsys) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text(OWN)
    file.chmod(0o640)
    assert main(["init", str(tmp_path)]) == 0
    text = file.read_text()
    assert text.startswith(OWN) and "- Be kind." in text
    assert file.stat().st_mode & 0o777 == 0o640
    assert not (tmp_path / "CLAUDE.md").exists()
    assert "is changed" in capsys.readouterr().out


def test_twice_is_once(rules, tmp_path: Path, capsys) -> None:
    main(["init", str(tmp_path), "--claude"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    capsys.readouterr()
    assert main(["init", str(tmp_path), "--claude"]) == 0
    assert capsys.readouterr().out == "Nothing to change.\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_new_policy_takes_the_place_of_the_old_where_it_stood(rules, tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text(OWN)
    main(["init", str(tmp_path)])
    file.write_text(file.read_text() + "\n## Below\n")
    rules["text"] = "- Be kinder.\n"
    main(["init", str(tmp_path)])
    text = file.read_text()
    assert "Be kind." not in text
    assert text.index("make test") < text.index("Be kinder") < text.index("## Below")
    assert text.count(init.BEGIN) == 1


@pytest.mark.parametrize("own", ["", OWN], ids=["nothing", "own"])
def test_uninstalling_leaves_what_was_there(rules, tmp_path: Path, own: str) -> None:
    names = ("AGENTS.md", "CLAUDE.md")
    if own:
        for name in names:
            (tmp_path / name).write_text(own)
    assert main(["init", str(tmp_path), "--claude"]) == 0
    assert "@AGENTS.md" in (tmp_path / "CLAUDE.md").read_text()
    assert main(["init", str(tmp_path), "--uninstall"]) == 0
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == (dict.fromkeys(names, own) if own else {})
    assert main(["init", str(tmp_path), "--uninstall"]) == 0


def test_text_below_the_block_stays(rules, tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text(OWN)
    main(["init", str(tmp_path)])
    file.write_text(file.read_text() + "\n## Below\n")
    main(["init", str(tmp_path), "--uninstall"])
    assert file.read_text() == f"{OWN}\n## Below\n"


def test_a_broken_block_is_left_to_a_person(rules, tmp_path: Path, capsys) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text(f"{OWN}\n{init.BEGIN}: x -->\nhalf")
    before = file.read_bytes()
    for options in ([], ["--uninstall"]):
        assert main(["init", str(tmp_path), *options]) == 2
        assert "[block_broken]" in capsys.readouterr().err
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    ["a\n<!-- gatehouse:end -->\nb", "\x1b[2J", "x" * (init.LARGEST + 1)],
    ids=["ends-the-block", "controls", "huge"],
)
def test_what_is_no_rules_is_not_written(rules, tmp_path: Path, capsys, text: str) -> None:
    rules["text"] = text
    assert main(["init", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []
    assert "nothing was written" in capsys.readouterr().err


def test_a_claude_file_that_is_the_agents_file_gets_no_second_block(rules, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text(OWN)
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    main(["init", str(tmp_path)])
    assert (tmp_path / "CLAUDE.md").is_symlink()
    assert (tmp_path / "AGENTS.md").read_text().count(init.BEGIN) == 1


def test_a_refusal_and_a_silent_portal_are_told(rules, tmp_path: Path, capsys, monkeypatch) -> None:
    def refuse(path: str):
        raise client.PortalRefused({"detail": "No.", "code": "aup_required", "remedy": "Accept it."}, 403)

    def silent(path: str):
        raise client.PortalUnreachable("It does not answer.")

    for asking, status, words in ((refuse, 1, "[aup_required]"), (silent, 2, "does not answer")):
        monkeypatch.setattr(init.client, "asking", asking)
        assert main(["init", str(tmp_path)]) == status
        assert words in capsys.readouterr().err
    assert main(["init", str(tmp_path / "nowhere")]) == 2
    assert main(["init", str(tmp_path), "--from", "x"]) == 2
    assert list(tmp_path.iterdir()) == []
