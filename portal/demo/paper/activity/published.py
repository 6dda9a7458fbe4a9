"""The numbers of the published measurement that commands on login nodes tell; what it leaves open is ours."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from portal.demo.plan import AGENT, HUMAN

DRIVERS: Final = (AGENT, HUMAN)
USERS: Final = {AGENT: 314, HUMAN: 1547}  # agents' owners have shells of their own, and count among people too
# §III-B: medians over sessions, for each minute that one is there; the spread is ours.
COMMANDS_A_MINUTE: Final = {AGENT: 3.53, HUMAN: 0.17}
RATE_SIGMA: Final = 0.5
AT_ONCE: Final = {AGENT: 25, HUMAN: 4}  # ours: commands of a minute in which there are any
UNKNOWN_AN_HOUR: Final = 40  # ours: commands of a node that nobody is known to drive
# Table I, for each 100 jobs submitted; the lesser tools are ours, so that with find, and but for editors, the sums are
# the paper's (432.7 and 15.4).
TOOLS: Final[dict[str, Mapping[str, float]]] = {
    AGENT: {"head": 176.2, "tail": 51.7, "cat": 24.8, "sed": 79.7, "awk": 30, "grep": 42.3, "wc": 15, "less": 10.3,
            "vim": 0.02},
    HUMAN: {"head": 4.4, "tail": 1.9, "cat": 0.29, "sed": 0.81, "awk": 1, "grep": 2.5, "wc": 0.5, "less": 2,
            "vim": 3.5},
}  # fmt: skip
# Figure 5a gives ratios for each user, 7.9 and 6.7; how many people's commands are such is ours.
WALKS_OF_PEOPLE: Final = 0.03
SEARCHES_OF_PEOPLE: Final = 0.02
WALKS_RATIO: Final = 7.9
SEARCHES_RATIO: Final = 6.7
# Figure 3 has no numbers: agents more of the first four, people of Slurm's. Shares of what the rows above leave.
REST: Final[dict[str, Mapping[str, float]]] = {
    AGENT: {"build": 0.2, "packages": 0.15, "versions": 0.17, "interpreters": 0.25, "network": 0.06, "other": 0.17},
    HUMAN: {"build": 0.1, "packages": 0.08, "versions": 0.08, "interpreters": 0.2, "network": 0.06, "editors": 0.06,
            "other": 0.42},
}  # fmt: skip


class Deeds(NamedTuple):
    """How often something was done in all, and by how many."""

    number: int
    users: int


# Table III.
DESTRUCTIVE: Final = {
    "rm_force": {AGENT: Deeds(23_655, 235), HUMAN: Deeds(5458, 306)},
    "kill": {AGENT: Deeds(5612, 140), HUMAN: Deeds(24, 8)},
    "git_discard": {AGENT: Deeds(1726, 209), HUMAN: Deeds(141, 31)},
}
REMOVES_ROOT: Final = 0.035 * 0.4  # of rm -f: 3.5 % of rm -rf, which four in ten are (ours)
# §VII-A, shares of agent users.
FETCHING: Final = 0.772
FETCHES: Final = {"code": 0.581, "web": 0.375, "search": 0.156}
FETCHING_MUCH: Final = 0.131
MUCH: Final = 100
EXTENDED: Final = 0.163
FETCH_CATEGORY: Final = {"code": "packages", "web": "network", "search": "network"}
# Ours: how many loops of the same query begin in an hour of a session, and the seconds between two queries.
POLLING_AN_HOUR: Final = {AGENT: 0.12, HUMAN: 0.004}
POLLING_PERIOD_S: Final = {AGENT: (2.0, 30.0), HUMAN: (20.0, 120.0)}
