"""Reading a Slurm: by its commands or by PySlurm, and the reader that serves one cluster."""

from telemetry.services.reader.asking import SlurmUnavailable
from telemetry.services.reader.commands import Commands
from telemetry.services.reader.pyslurm import PySlurm
from telemetry.services.reader.reader import Reader
from telemetry.services.reader.service import hold_reader, serve

__all__ = ["Commands", "PySlurm", "Reader", "SlurmUnavailable", "hold_reader", "serve"]
