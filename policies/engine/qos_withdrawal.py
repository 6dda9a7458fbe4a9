"""How a QoS is withdrawn from an association in Slurm and given back: commands as lists of words, from checked names.

Both name the one QoS and leave the others of the association alone, so each may be run twice, and what somebody else
changed meanwhile stays.
"""

import re
from dataclasses import dataclass
from typing import Final

_NAME: Final = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.@-]{0,63}")


@dataclass(frozen=True, slots=True)
class Standing:
    """An association as Slurm tells it, with the QoS that its jobs may name; an empty partition is any."""

    cluster: str
    user: str
    account: str
    partition: str
    qos: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What withdraws a QoS there, and what gives back exactly that; or why it is left."""

    withdraw: tuple[str, ...] = ()
    restore: tuple[str, ...] = ()
    left: str = ""


def plan_withdrawal(at: Standing, qos: str, *, others: int) -> Withdrawal:
    """Plan to withdraw a QoS from an association that `others` agents that nobody stopped share."""
    if qos not in at.qos:
        return Withdrawal(left="It does not stand there.")
    if at.qos == (qos,):
        return Withdrawal(left="It is the only one: every job there would be refused, people's too.")
    if others:
        return Withdrawal(left=f"Agents that nobody stopped share it: {others}.")
    names = (at.cluster, at.user, at.account, qos, *([at.partition] if at.partition else []))
    if not all(map(_NAME.fullmatch, names)):
        return Withdrawal(left="A name has characters that no command is given.")
    place = ["where", f"name={at.user}", f"account={at.account}", f"cluster={at.cluster}"]
    if at.partition:
        place.append(f"partition={at.partition}")
    change = ("sacctmgr", "-i", "modify", "user", *place, "set")
    return Withdrawal((*change, f"qos-={qos}"), (*change, f"qos+={qos}"))
