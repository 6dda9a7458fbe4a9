"""The harnesses we know by name."""

import tomllib
from functools import cache
from importlib.resources import files


@cache
def known_harnesses() -> dict[str, str]:
    """Map each harness's slug to the name shown, in the order they are offered."""
    text = files("principals.engine").joinpath("harnesses.toml").read_text(encoding="utf-8")
    return {str(slug): str(name) for slug, name in tomllib.loads(text)["harness"].items()}


def harness_remedy() -> str:
    """Say what to send instead of a harness nobody knows."""
    return f"Send one of the known harnesses: {', '.join(known_harnesses())}."


def harness_name(slug: str) -> str:
    """Give the name shown for a slug; an unknown harness is shown under its slug."""
    return known_harnesses().get(slug, slug)
