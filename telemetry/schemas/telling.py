"""What the API says of what harnesses tell of themselves."""

from datetime import date

from ninja import Schema


class ToldDay(Schema):
    """What an agent's harness told of one UTC day. `accepted` and `rejected` are decisions a person was asked for."""

    day: date
    sessions: int
    cost_usd: float
    tokens: dict[str, int]
    requests: int
    errors: int
    accepted: int
    rejected: int
    automatic: int


class ToldDays(Schema):
    """The days of the last thirty on which an agent's harness told anything, the oldest first."""

    items: list[ToldDay]


class MetricsRefused(Schema):
    """Points that were not taken (64-bit integers are text in OTLP's JSON), or only words of advice."""

    rejectedDataPoints: str | None = None
    errorMessage: str | None = None


class MetricsTaken(Schema):
    """`ExportMetricsServiceResponse`: empty where everything was taken."""

    partialSuccess: MetricsRefused | None = None


class LogsRefused(Schema):
    """Records that were not taken, or only words of advice."""

    rejectedLogRecords: str | None = None
    errorMessage: str | None = None


class LogsTaken(Schema):
    """`ExportLogsServiceResponse`: empty where everything was taken."""

    partialSuccess: LogsRefused | None = None
