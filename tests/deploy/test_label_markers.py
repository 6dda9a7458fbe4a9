"""The controller's labels know the harnesses that the portal knows."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

_LUA = Path(__file__).parents[2] / "deploy/slurm/gatehouse_label.lua"
_ENTRY = re.compile(r'^    \{ "([a-z-]+)", \{ ((?:"[A-Z_]+"(?:, )?)+) \} \},$', re.MULTILINE)


def test_the_markers_are_those_of_the_catalogue() -> None:
    tables = tomllib.loads(files("principals.engine").joinpath("harnesses.toml").read_text())["recognise"]
    known = {slug: table["markers"].split() for slug, table in tables.items() if table["markers"]}
    assert {slug: re.findall(r'"(\w+)"', names) for slug, names in _ENTRY.findall(_LUA.read_text())} == known
