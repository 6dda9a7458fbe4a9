"""The inventory as a table of Markdown, for docs/review-board.md."""

from portal.rights.inventory import INVENTORY
from portal.rights.not_keyed import NOT_KEYED


def inventory_table() -> str:
    """Return what is held, and what holds nothing about a person, as two tables."""
    held = ["| table | purpose | kept | when a person is erased |", "|---|---|---|---|"]
    held += [f"| `{one.table}` | {one.purpose} | {one.kept} | {one.on_erase.value} |" for one in INVENTORY]
    none = ["| table | why nothing of it is about a person |", "|---|---|"]
    none += [f"| `{table}` | {reason} |" for table, reason in sorted(NOT_KEYED.items())]
    return "\n".join([*held, "", *none])
