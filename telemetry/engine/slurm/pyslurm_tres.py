"""Trackable resources of PySlurm 25.11 (`TrackableResources.to_dict()`), as amounts by name."""

from typing import Final

from telemetry.engine.slurm.documents import at, plain_number, plain_text
from telemetry.engine.slurm.errors import FieldError

_NAME: Final = "type_and_name"


def read_resources(resources: object) -> dict[str, int]:
    """Find every resource, sizes in MiB: some stand in groups (`gres`), and without a limit there is None.

    Raises FieldError `unconverted_tres` for what is no dump: how much an object held nobody knows.
    """
    if resources is None:
        return {}
    if not isinstance(resources, dict):
        raise FieldError("unconverted_tres", f"{resources!r:.60} is an object of PySlurm: convert it before the dump")
    found: dict[str, int] = {}
    for value in resources.values():
        if isinstance(value, dict) and _NAME in value:
            amount = plain_number(at(value, "count"))
            if amount is not None:
                found[plain_text(value[_NAME])] = amount
        elif isinstance(value, dict):
            found |= read_resources(value)
    return found
