"""All figures of the report, of every app that has some: by key, in the order in which a section shows them."""

from typing import Final

from policies.figures import REPORT as OF_POLICIES
from security.figures import REPORT as OF_SECURITY
from telemetry.figures import FIGURES as OF_TELEMETRY
from telemetry.figures import Figure

FIGURES: Final[dict[str, Figure]] = OF_TELEMETRY | {figure.key: figure for figure in (*OF_SECURITY, *OF_POLICIES)}
