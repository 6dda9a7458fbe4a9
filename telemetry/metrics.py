"""What `/metrics` tells of the intake: how soon job events are told, and what hooks of Slurm miss."""

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily

from telemetry.selectors import hooks


def intake_metrics() -> Iterable[GaugeMetricFamily]:
    """Give the lag of job events by who told first, and the share of ends that the reader alone found."""
    lag = GaugeMetricFamily(
        "gatehouse_job_event_lag_seconds", "From a change of a job to its event, newest of the last day",
        labels=["cluster", "source", "quantile"],
    )  # fmt: skip
    for teller in hooks.tellers():
        for quantile, value in (("0.5", teller.lag_median_s), ("0.99", teller.lag_p99_s)):
            if value is not None:
                lag.add_metric([teller.cluster, teller.name, quantile], value)
    missed = GaugeMetricFamily(
        "gatehouse_hooks_missed_share", "Of the last day's ends of jobs that ran, those no hook told of",
        labels=["cluster"],
    )  # fmt: skip
    for each in hooks.missed_ends():
        if each.share is not None:
            missed.add_metric([each.cluster], each.share)
    yield lag
    yield missed
