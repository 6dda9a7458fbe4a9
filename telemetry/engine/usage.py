"""What usage is counted in: UTC days and hours, and the buckets of runtimes with their shares and medians."""

from collections.abc import Sequence

DAY_S = 86_400
HOUR_S = 3_600

# Upper bounds (inclusive) of the runtime buckets; one more bucket holds what is longer. One minute and five
# minutes are the bounds that the published measurement of agent load reports, so they must be edges; the
# steps around its medians (193 s and 278 s) are narrow, so that an interpolated median is off by little.
RUNTIME_EDGES_S = (
    *(0, 5, 10, 20, 30, 45, 60, 90, 120, 150, 180, 210, 240, 270, 300, 420, 600, 900, 1200, 1800, 2700),
    *(3600, 5400, 7200, 10_800, 14_400, 21_600, 28_800, 43_200, 64_800, 86_400, 129_600, 172_800, 259_200),
    *(345_600, 432_000, 604_800, 864_000, 1_209_600, 1_814_400, 2_592_000, 5_184_000),
)
RUNTIME_BUCKETS = len(RUNTIME_EDGES_S) + 1


def share_within(counts: Sequence[int], limit_s: int) -> float | None:
    """Share of jobs that ran at most `limit_s`, which must be an edge; None without jobs.

    Raises ValueError when `limit_s` is no edge: the histogram cannot tell.
    """
    if limit_s not in RUNTIME_EDGES_S:
        raise ValueError(f"{limit_s} s is not an edge of the runtime histogram")
    total = sum(counts)
    return sum(counts[: RUNTIME_EDGES_S.index(limit_s) + 1]) / total if total else None


def histogram_median(counts: Sequence[int]) -> float | None:
    """Estimate the median runtime in seconds from bucket counts, by linear interpolation inside its bucket.

    None without jobs. In the open last bucket the answer is its lower edge: a lower bound. The error is at
    most the width of the bucket.
    """
    half, below = sum(counts) / 2, 0
    if not half:
        return None
    for bucket, count in enumerate(counts):
        if below + count >= half and count:
            low = RUNTIME_EDGES_S[bucket - 1] if bucket else 0
            high = RUNTIME_EDGES_S[bucket] if bucket < len(RUNTIME_EDGES_S) else low
            return low + (high - low) * (half - below) / count
        below += count
    return None
