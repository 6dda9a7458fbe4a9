"""Reading a Slurm: its commands, and the reader that serves one cluster."""

from telemetry.services.reader.commands import Commands, SlurmUnavailable
from telemetry.services.reader.reader import Reader
from telemetry.services.reader.service import hold_reader, serve

__all__ = ["Commands", "Reader", "SlurmUnavailable", "hold_reader", "serve"]
