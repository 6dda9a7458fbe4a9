"""Printing as Slurm's own `squeue` prints, from texts that one `squeue` printed for all: byte for byte, or not at all.

What cannot be printed exactly is `PassedOn`: the real command says it. Standard library alone: login nodes import this.
"""

from telemetry.engine.slurm.printing.asked import Asked, read_squeue_arguments
from telemetry.engine.slurm.printing.errors import PassedOn
from telemetry.engine.slurm.printing.fields import FIELDS, KEYS, Field
from telemetry.engine.slurm.printing.queue_table import Printed, Queue, print_queue

__all__ = ["FIELDS", "KEYS", "Asked", "Field", "PassedOn", "Printed", "Queue", "print_queue", "read_squeue_arguments"]
