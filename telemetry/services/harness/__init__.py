"""What harnesses tell of themselves over OTLP: who agreed to it, taking it, and adding it up by days."""

from telemetry.services.harness.choice import choose_harness_telemetry, is_allowed
from telemetry.services.harness.days import refresh_harness_days
from telemetry.services.harness.record import Taken, expect_harness_telemetry, record_logs, record_metrics

__all__ = [
    "Taken",
    "choose_harness_telemetry",
    "expect_harness_telemetry",
    "is_allowed",
    "record_logs",
    "record_metrics",
    "refresh_harness_days",
]
