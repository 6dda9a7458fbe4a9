"""The policy as agents read it: `AGENTS.md` and a skill, short enough to be read at every start.

The rule by which tokens are counted: a run of ASCII letters and digits counts one for each started four characters, any
other sign one. It needs no tokenizer of any model, and each site counts the same.
"""

import re
from dataclasses import replace
from typing import Final

from policies.engine.aup import Aup
from policies.engine.clauses import EVERYTHING, Clause, Fault, Modality, PolicyError

MOST_TOKENS: Final = 1500
SKILL: Final = "site-policy"
_RUNS: Final = re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9]")
_HEADINGS: Final = {
    Modality.FORBID: "Never", Modality.REQUIRE: "Always", Modality.LIMIT: "Limits", Modality.ADVISE: "Better",
    Modality.INFORM: "Know",
}  # fmt: skip


def count_tokens(text: str) -> int:
    """Count tokens by the rule above."""
    return sum((len(run) + 3) // 4 if run.isalnum() and run.isascii() else 1 for run in _RUNS.findall(text))


def agents_md(aup: Aup, *, url: str) -> str:
    """Write the policy as the block that stands in an `AGENTS.md`. `url` is the portal's address."""
    lines = [f"## Rules of this cluster (policy {aup.version})", ""]
    lines += [
        f"They bind every coding agent here. Whole text: {url}/aup/ · who you are and what you may do: `gatehouse me`.",
        "A refusal names a `code` and a `remedy`: follow the remedy, do not try again and again.", "",
    ]  # fmt: skip
    return "\n".join(lines) + "\n" + _rules(aup)


def is_plain(text: str) -> bool:
    """Say whether a text can stand in a block of an `AGENTS.md`: `gatehouse init` writes no other."""
    return "<!--" not in text and all(each.isprintable() or each == "\n" for each in text)


def skill_md(aup: Aup, *, url: str) -> str:
    """Write the policy as a skill, with the front matter by which harnesses choose it."""
    head = (
        f"---\nname: {SKILL}\ndescription: Rules of this cluster for coding agents. Read before using Slurm, "
        "the shared file systems, the network or data on it.\n---\n\n"
    )
    waiting = (
        "## How to\n\n- Wait for a job: `gatehouse wait JOB`.\n- Look at the queue: `gatehouse squeue --me`.\n"
        "- Who am I, what may I do: `gatehouse me`.\n\n"
    )
    return f"{head}# Rules of this cluster (policy {aup.version})\n\nWhole text: {url}/aup/\n\n{waiting}{_rules(aup)}"


def require_readable(aup: Aup) -> None:
    """Raise `PolicyError` where agents could not read it: too long for every start, or not plain text.

    What nobody sees on a page must not reach an agent either, and a comment could end the block in an `AGENTS.md`.
    """
    longest = "https://gatehouse.example.org/of-some-length"
    told = agents_md(aup, url=longest)
    if not is_plain(told):
        sentence = "What agents read holds `<!--`, or characters that cannot be seen."
        raise PolicyError(Fault("agent_text_form", sentence, "Write the texts for agents as plain text."))
    count = max(count_tokens(told), count_tokens(skill_md(aup, url=longest)))
    if count > MOST_TOKENS:
        sentence = f"What agents read has {count} tokens, more than {MOST_TOKENS}."
        raise PolicyError(Fault("agent_text_long", sentence, "Shorten the texts for agents, or leave clauses out."))


def _rules(aup: Aup) -> str:
    parts = []
    for modality, heading in _HEADINGS.items():
        if found := [clause for clause in aup.clauses if clause.modality is modality]:
            parts.append(f"### {heading}\n\n" + "".join(f"- {_line(clause)}\n" for clause in found))
    return "\n".join(parts)


def _line(clause: Clause) -> str:
    """Write a clause in one line, with whom it binds. Labs are not named: what agents read goes to models outside."""
    said, applies = " ".join(clause.text_agent.split()), clause.applies
    words = " ".join(replace(applies, labs=EVERYTHING).words.split())
    some = "" if applies.labs == EVERYTHING else "some labs"
    whom = "; ".join(part for part in (some, words) if part)
    return f"{said} ({whom})" if whom else said
