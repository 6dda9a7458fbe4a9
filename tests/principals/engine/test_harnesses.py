"""The harnesses we know by name."""

from pathlib import Path

from principals.engine.harnesses import known_harnesses


def test_the_documentation_lists_every_slug() -> None:
    text = (Path(__file__).parents[3] / "docs/harnesses.md").read_text(encoding="utf-8")
    assert f"Harness slugs: `{' '.join(known_harnesses())}`" in text
