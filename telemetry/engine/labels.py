"""What the controller wrote beside a job: the label of `deploy/slurm/gatehouse_label.lua`, in its `AdminComment`."""

import re
from collections.abc import Mapping
from typing import Final

COLUMN: Final = "AdminComment"
# Words of the site may stand around it. Another version says what we cannot know.
_LABEL: Final = re.compile(
    r"(?:^|\s)gatehouse:v1:harness=(?P<harness>[a-z0-9][a-z0-9-]{0,31}):marker=[A-Z][A-Z0-9_]{0,63}(?=$|\s)"
)


def labelled_harness(extra: Mapping[str, str]) -> str:
    """Return the harness that the controller labelled a job with, from its columns without a place; "" for none."""
    comment = extra.get(COLUMN, "")
    found = _LABEL.search(comment) if "gatehouse:" in comment else None
    return found["harness"] if found else ""
