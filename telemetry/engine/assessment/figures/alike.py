"""Which work is shared between people (paper, Table II)."""

from typing import Final

from telemetry.engine.assessment.figures.kinds import SUBMITTED, Reading, ratio
from telemetry.engine.report_content import Column, Figure, Row

_NAMES: Final = {
    "command": "Same command", "submit_line": "Same submit line", "script": "Same script name",
    "template": "Same command but for numbers and folders", "application": "Same application",
    "work_dir": "Same folder",
}  # fmt: skip


def figures(reading: Reading) -> list[Figure]:
    """Return the table of similarity."""
    rows = tuple(
        Row(one.kind, _NAMES[one.kind], (one.jobs, ratio(one.jobs, reading.sum("submissions")), one.keys,
                                         one.most_users or None))
        for one in reading.found.alike
    )  # fmt: skip
    told = max((one.told for one in reading.found.alike), default=0)
    application = next((one for one in reading.found.alike if one.kind == "application"), None)
    return [Figure(
        "similar-jobs", "Work shared between people",
        "Jobs that have the same as a job of another user. The rows loosen what “the same” is, from the command that "
        "was submitted to the program it runs; the folder stands apart. The headline is the application’s share.",
        SUBMITTED, "share", ratio(application.jobs, reading.sum("submissions")) if application and told else None,
        reading.unknown("submissions"),
        note="Compared are hashes of submit lines and folders; what stands inside a batch script, accounting does not "
        "know." if told else "These dumps have neither SubmitLine nor WorkDir: ask sacct for both.",
        columns=(Column("jobs", "Jobs", "jobs"), Column("share", "Of all", "share"),
                 Column("keys", "Different ones", "keys"), Column("users", "Most people", "people")),
        rows=rows if told else (),
    )]  # fmt: skip
