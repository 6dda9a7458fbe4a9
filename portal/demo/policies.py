"""What the demo asked of the facility: trials granted and refused, extensions submitted and decided."""

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple

from policies import services as policy_services
from policies.models import ExtensionRelease
from policies.services import Submission, TrialWish
from portal.demo import cast
from portal.demo.history import Act, Stage, person
from principals.models import Lab

# Who asks for trials, and how many in the last day: one of them for more than a day holds.
_TRIALS: Final = {"u0421": 21, "u0455": 9, "u0102": 14, "u0733": 33, "u0611": 6, "u0682": 12, "u0377": 5}
_WISHES: Final = ((5, 0), (10, 1), (15, 1), (15, 1), (10, 0), (30, 1))  # minutes, GPUs; the last asks too much
_DAY_MINUTES: Final = 22 * 60


class Offer(NamedTuple):
    """An extension, who submitted it, and what became of it: a state and the reason or the conditions."""

    kind: str
    identity: str
    version: str
    by: str
    capabilities: str
    words: str
    decision: str = ""
    reason: str = ""
    conditions: str = ""


_OFFERS: Final = (
    Offer("mcp_server", "mdtools-mcp", "1.4.2", "u0421", "fs.read exec", "Reads trajectories and topologies.",
          "admitted", "Source read; runs what it says."),
    Offer("skill", "slurm-batch", "2.1.0", "u0398", "job.read job.submit", "How to write batch scripts here.",
          "admitted", "Matches the site's guide."),
    Offer("plugin", "notebook-runner", "0.9.0", "u0238", "exec net.listen", "Runs notebooks from the harness.",
          "admitted_with_conditions", "Listens on a port.", "Binds to localhost only."),
    Offer("mcp_server", "web-reader", "0.3.1", "u0768", "net.fetch credentials.read", "Reads pages behind a login.",
          "denied", "It reads keys that it does not need."),
    Offer("hook", "auto-approve", "1.0.0", "u0733", "settings.write exec", "Answers the harness's questions itself.",
          "denied", "Widens its own rights."),
    Offer("skill", "dft-recipes", "0.2.0", "u0741", "fs.read job.submit", "Inputs for common relaxations."),
    Offer("mcp_server", "mdtools-mcp", "1.5.0", "u0421", "fs.read exec net.fetch", "Adds a fetch of force fields."),
)  # fmt: skip


def acts(stage: Stage) -> Iterator[Act]:
    """Tell of a day of trials and a month of extensions."""
    for login, number in _TRIALS.items():
        for place in range(number):
            minutes_ago = _DAY_MINUTES * (number - place) / (number + 1) * stage.rng.uniform(0.9, 1.0)
            minutes, gpus = _WISHES[place % len(_WISHES)]
            wish = TrialWish(minutes=minutes, gpus=gpus, purpose=cast.LAB_OF[login].jobs[place % 3])
            yield Act(stage.now - timedelta(minutes=minutes_ago), partial(_ask, login, wish))
    for place, offer in enumerate(_OFFERS):
        submitted = stage.now - timedelta(days=25 - 3.8 * place, hours=2)
        yield Act(submitted, partial(_submit, offer))
        if offer.decision:
            decided = submitted + timedelta(hours=stage.rng.uniform(2, 30))
            yield Act(min(decided, stage.now), partial(_decide, offer))


def _ask(login: str, wish: TrialWish) -> None:
    lab = Lab.objects.get(name=cast.LAB_OF[login].name)
    policy_services.request_trial(actor=person(login), lab=lab, wish=wish)


def _submit(offer: Offer) -> None:
    digest = hashlib.sha256(f"{offer.identity} {offer.version}".encode()).hexdigest()
    policy_services.submit_extension(
        actor=person(offer.by),
        submission=Submission(
            kind=offer.kind, identity=offer.identity, version=offer.version, digest=f"sha256:{digest}",
            capabilities=offer.capabilities.split(), description=offer.words,
            source_url=f"https://git.example.org/{offer.identity}",
        ),
    )  # fmt: skip


def _decide(offer: Offer) -> None:
    release = ExtensionRelease.objects.get(extension__identity=offer.identity, version=offer.version)
    policy_services.decide_extension(
        actor=person(cast.STAFF), release=release, decision=offer.decision, reason=offer.reason,
        conditions=offer.conditions,
    )  # fmt: skip
