"""Starter packs: policies drawn from what sites publish. A site takes one, edits it and publishes it as its own."""

from importlib.resources import files
from typing import Final

from policies.engine.aup import Aup, parse_aup

PACKS: Final = {
    "light-login": "Light use of login nodes, the rest as jobs (as NCAR and the Alliance in Canada)",
    "supervised": "A person watches; own jobs only (as CSC)",
    "compute-only": "Agents only in jobs, data by level (as FASRC and CSCS)",
    "dedicated-host": "A host of its own for coding tools (as Aalto)",
    "service-account": "Agents under accounts of their own (as NeSI)",
    "cautious": "Little, watched, no loops (as CHTC)",
}


def pack_source(name: str) -> str:
    """Return the TOML of a pack. Raises `KeyError` for one that there is not."""
    if name not in PACKS:
        raise KeyError(name)
    return files("policies.engine.packs").joinpath(f"{name}.toml").read_text(encoding="utf-8")


def read_pack(name: str) -> Aup:
    """Return a pack as a policy."""
    return parse_aup(pack_source(name))
