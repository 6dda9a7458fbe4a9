"""What jobs used of their GPUs: told by API or file, kept until its job is known, taken together a job at a time."""

from telemetry.services.gpu.files import FileSummary, import_gpu_file
from telemetry.services.gpu.record import GpuOutcome, record_gpu_utilisation
from telemetry.services.gpu.waiting import match_gpu_utilisation

__all__ = ["FileSummary", "GpuOutcome", "import_gpu_file", "match_gpu_utilisation", "record_gpu_utilisation"]
