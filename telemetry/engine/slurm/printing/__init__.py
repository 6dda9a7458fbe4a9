"""Printing as Slurm's own `squeue` and `sacct -X` print, from what one look told for all: byte for byte, or not at all.

What cannot be printed exactly is `PassedOn`: the real command says it. Standard library alone: login nodes import this.
"""

from telemetry.engine.slurm.printing.account_asked import AskedAccounts, read_sacct_arguments
from telemetry.engine.slurm.printing.account_fields import FACTS
from telemetry.engine.slurm.printing.account_table import Accounts, print_accounts
from telemetry.engine.slurm.printing.asked import Asked, read_squeue_arguments
from telemetry.engine.slurm.printing.errors import PassedOn
from telemetry.engine.slurm.printing.fields import FIELDS, KEYS, Field
from telemetry.engine.slurm.printing.queue_table import Printed, Queue, print_queue

__all__ = [
    "FACTS", "FIELDS", "KEYS", "Accounts", "Asked", "AskedAccounts", "Field", "PassedOn", "Printed", "Queue",
    "print_accounts", "print_queue", "read_sacct_arguments", "read_squeue_arguments",
]  # fmt: skip
