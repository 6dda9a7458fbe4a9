"""How it is known whose a job is: coverage by each kind of evidence, and where one speaks against another."""

from typing import Final, NamedTuple

from telemetry.engine import attribution
from telemetry.figures.kinds import Column, Figure, Measured, Row, Section, Unit
from telemetry.figures.load import JOB_WORDS
from telemetry.figures.readings import Readings
from telemetry.selectors import ratio


class Method(NamedTuple):
    """A kind of evidence: its name, what it says of one job, and what speaks against it, "" where nothing does."""

    title: str
    sentence: str
    doubt: str = ""


METHODS: Final = {
    attribution.METHOD_RECEIPT: Method(
        "Declared by a receipt",
        "It names a receipt that was given to an agent of this login name’s owner, and was submitted while that was "
        "valid.",
    ),
    attribution.METHOD_RECEIPT_DOUBTED: Method(
        "Declared by a receipt, against other evidence",
        "It names a receipt that was given to an agent of this login name’s owner, while a label or the sessions show "
        "another harness, or a person’s shell.",
        "the receipt says one agent, label or session another or a person",
    ),
    attribution.METHOD_FOREIGN: Method(
        "Names a receipt of somebody else; other evidence answers",
        "It names a receipt that was given to an agent of somebody else. That is no evidence: what else is known of "
        "its submission answers.",
        "the receipt is of another person’s agent",
    ),
    attribution.METHOD_FOREIGN_ALONE: Method(
        "Names a receipt of somebody else; not attributed",
        "It names a receipt that was given to an agent of somebody else. That is no evidence, and no session of this "
        "login covers its submission, so it is nobody’s.",
        "the receipt is of another person’s agent",
    ),
    attribution.METHOD_LABELLED: Method(
        "Labelled by the controller",
        "The controller found a harness’s variable in the environment it was submitted from.",
    ),
    attribution.METHOD_LABELLED_DOUBTED: Method(
        "Labelled by the controller, under a person’s shell",
        "The controller found a harness’s variable in the environment it was submitted from, while a person’s shell "
        "was what the sessions show.",
        "the label says an agent, the session a person",
    ),
    attribution.METHOD_OBSERVED: Method(
        "Its submission was seen", "A submission under this session was seen within seconds of the job’s."
    ),
    attribution.METHOD_OBSERVED_SEVERAL: Method(
        "Submissions of several sessions were seen",
        "Submissions under several sessions of this login were seen within seconds of the job’s; the last one is "
        "named.",
        "sessions submitted within the same seconds",
    ),
    attribution.METHOD_DECLARED: Method(
        "In an agent’s session", "One agent session of this login covers its submission."
    ),
    attribution.METHOD_DECLARED_SHARED: Method(
        "In an agent’s session, beside a person’s shell",
        "An agent session covers its submission, and an interactive shell of the same login does too.",
        "a person’s shell was open too",
    ),
    attribution.METHOD_DECLARED_SEVERAL: Method(
        "In several agents’ sessions",
        "Several agent sessions of this login cover its submission; the one that began last is named.",
        "agents’ sessions overlap",
    ),
    attribution.METHOD_INTERACTIVE: Method(
        "In a person’s shell", "Only an interactive shell of this login covers its submission."
    ),
    attribution.METHOD_NONE: Method(
        "Not attributed",
        "No session of this login covers its submission. Absence proves nothing, so it is nobody’s.",
    ),
}


def _methods(readings: Readings) -> Measured:
    found = readings.methods
    total = sum(found.values())
    unknown = sum(found.get(key, 0) for key in attribution.UNATTRIBUTED)
    rows = tuple(
        Row(key, method.title, (found.get(key, 0), ratio(found.get(key, 0), total)))
        for key, method in METHODS.items()
    )  # fmt: skip
    columns = (
        Column("submissions", "Submissions", Unit.SUBMISSIONS, adds_up=True),
        Column("share", "Of all", Unit.SHARE),
    )
    doubted = sum(
        found.get(key, 0) for key, method in METHODS.items() if method.doubt and key not in attribution.UNATTRIBUTED
    )
    share = ratio(doubted, total - unknown)
    note = "" if share is None else f"Evidence spoke against evidence for {share:.1%} of those attributed."
    return Measured(ratio(total - unknown, total), columns, rows, ratio(unknown, total), note=note)


LIMIT = "A session that nobody saw covers nothing: what is not attributed holds agents’ jobs too."
FIGURES = [
    Figure(
        "attribution-methods", Section.LOAD, "Submissions that are attributed, by evidence",
        "The best evidence there is for each job: an agent’s receipt that it names, the controller’s label, its "
        "submission seen under a session, a session of its login name at its submission. Rows where evidence disagrees "
        "are named.",
        JOB_WORDS, Unit.SHARE, _methods, facility_only=True,
    ),
]  # fmt: skip
