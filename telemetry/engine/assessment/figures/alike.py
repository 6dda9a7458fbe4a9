"""Which work is shared between people (paper, Table II)."""

from telemetry.engine.assessment.figures.kinds import SUBMITTED, Reading, ratio
from telemetry.engine.iteration import LIKENESS_NAMES, SIMILAR, SIMILAR_NOTE, SIMILAR_WORDS
from telemetry.engine.report_content import Column, Figure, Row


def figures(reading: Reading) -> list[Figure]:
    """Return the table of similarity."""
    submitted, found = reading.sum("submissions"), reading.found.alike
    rows = tuple(
        Row(
            one.kind, LIKENESS_NAMES[one.kind], (one.jobs, ratio(one.jobs, submitted), one.keys, one.most_users or None)
        )
        for one in found
    )  # fmt: skip
    told = max((one.told for one in found), default=0)
    share = next((ratio(one.jobs, submitted) for one in found if one.kind == "application"), None)
    return [Figure(
        "similar-jobs", SIMILAR, SIMILAR_WORDS, SUBMITTED, "share", share if told else None,
        reading.unknown("submissions"),
        note=SIMILAR_NOTE if told else "These dumps have neither SubmitLine nor WorkDir: ask sacct for both.",
        columns=(Column("jobs", "Jobs", "jobs"), Column("share", "Of all", "share"),
                 Column("keys", "Different ones", "keys"), Column("users", "Most people", "people")),
        rows=rows if told else (),
    )]  # fmt: skip
