"""A harness is recognised by what it runs, and nothing else passes for one."""

import pytest

from principals.engine.harnesses import known_harnesses
from principals.engine.recognition import read_signatures, recognise, signatures


@pytest.mark.parametrize(
    ("argv", "exe", "slug"),
    [
        (["claude"], "", "claude-code"),
        (["/home/a/.local/bin/claude", "-p", "fix it"], "", "claude-code"),
        (["2.1.317"], "/home/a/.local/share/claude/versions/2.1.317", "claude-code"),
        (["node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"], "/usr/bin/node", "claude-code"),
        (["node", "--max-old-space-size=8192", "/opt/@openai/codex/bin/codex.js", "exec", "x"], "", "codex"),
        (["codex", "exec", "say hello"], "", "codex"),
        (["/usr/bin/python3.11", "/home/a/.local/bin/aider", "--model", "x"], "", "aider"),
        (["cursor-agent"], "", "cursor"),
        (["bun", "/x/opencode"], "", "opencode"),
        (["node", "/x/@github/copilot/index.js"], "", "copilot"),
        (["gemini"], "", "gemini-cli"), (["goose", "run"], "", "goose"), (["amp"], "", "amp"),
    ],
)  # fmt: skip
def test_a_harness_is_recognised(argv: list[str], exe: str, slug: str) -> None:
    assert recognise(argv, exe) == slug


@pytest.mark.parametrize(
    "argv",
    [
        [], ["vim", "claude"], ["cat", "/home/a/claude/codex.md"], ["bash", "-c", "claude -p x"], ["claude-monitor"],
        ["python3", "-c", "codex"], ["node", "server.js", "codex"], ["codexd"], ["my-claude"], ["man", "codex"],
        ["claude", "--version"], ["claude", "mcp", "add", "x"], ["codex", "login"], ["gemini", "extensions", "list"],
        ["node", "/usr/lib/@anthropic-ai/claude-code/cli.js", "--help"], ["node"], ["node", "-e", "codex"], [""],
    ],
)  # fmt: skip
def test_nothing_else_passes_for_one(argv: list[str]) -> None:
    assert recognise(argv) == ""


def test_the_harnesses_that_have_names_are_those_that_are_recognised() -> None:
    assert [each.slug for each in signatures()] == list(known_harnesses())


def test_a_site_adds_its_own() -> None:
    own = read_signatures({"house-agent": {"executables": "hagent"}})
    assert recognise(["/opt/bin/hagent"], among=own) == "house-agent"
    assert recognise(["claude"], among=own) == ""
