"""What being checked in means, in the words that pages, answers and documents share."""

from typing import Final

MEANING: Final = "An agent is checked in while a session of it is open."
WHO_DECLARES: Final = (
    "The site’s collector, or automation on its login nodes, declares sessions with a service token of the scope "
    "ingest:activity or ingest:sessions; a harness checks in by itself with "
    "POST /api/v1/sessions; running gatehouse me declares none."
)
REMEDY: Final = (
    f"Start its harness on a node it may use. {WHO_DECLARES} "
    "If this stays, ask staff whether sessions of that node are declared."
)
