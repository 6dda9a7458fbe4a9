"""What the demo asked of the facility: trials granted, refused and used, extensions submitted and decided."""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from policies import services as policy_services
from policies.models import ExtensionRelease, TrialGrant
from policies.services import Submission, TrialWish
from portal.demo import cast
from portal.demo.history import Act, Stage, person
from portal.demo.trials import TrialPlan
from principals.models import Lab

_SETTLED_FOR: Final = timedelta(hours=24)


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
    """Tell of a month of extensions."""
    for place, offer in enumerate(_OFFERS):
        submitted = stage.now - timedelta(days=25 - 3.8 * place, hours=2)
        yield Act(submitted, partial(_submit, offer))
        if offer.decision:
            decided = submitted + timedelta(hours=stage.rng.uniform(2, 30))
            yield Act(min(decided, stage.now), partial(_decide, offer))


def requests(plans: Iterable[TrialPlan]) -> Iterator[Act]:
    """Tell of the trials asked for."""
    for plan in plans:
        wish = TrialWish(minutes=plan.minutes, gpus=plan.gpus, purpose=plan.purpose)
        yield Act(datetime.fromtimestamp(plan.asked_s, UTC), partial(ask, plan.login, wish))


def ask(login: str, wish: TrialWish) -> TrialGrant | None:
    """Ask for a trial as a person, now; return what was granted."""
    lab = Lab.objects.get(name=cast.LAB_OF[login].name)
    return policy_services.request_trial(actor=person(login), lab=lab, wish=wish).grant


def settlings(stage: Stage) -> Iterator[Act]:
    """Tell when trials were settled: each hour of the day they were asked in, and now.

    A facility's worker does that each minute. Play it after the jobs of the same moment.
    """
    hours = int(_SETTLED_FOR / timedelta(hours=1))
    for hour in reversed(range(hours)):
        yield Act(stage.now - timedelta(hours=hour), policy_services.settle_trials)


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
