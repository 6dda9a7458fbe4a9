"""What a job did with its GPUs: the four quadrants, what was stranded, what would have done."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine.accelerators import ACCELERATORS, identify
from telemetry.engine.gpu_use import (
    HEAVY_PERCENT,
    THRESHOLD_WORDS,
    Fit,
    GpuReading,
    Quadrant,
    classify,
    find_fault,
    find_fit,
    sum_up,
)

GIB = 2**30
BY_SLUG = {one.slug: one for one in ACCELERATORS}
A100, H200, V100 = BY_SLUG["nvidia-a100-80gb"], BY_SLUG["nvidia-h200-141gb"], BY_SLUG["nvidia-v100-32gb"]
PERCENT = st.floats(0, 100)


def a_gpu(compute: float = 90, memory: float = 90, gib: float | None = 70, gpu: str = "n1:0", **fields) -> GpuReading:
    peak = None if gib is None else int(gib * GIB)
    return GpuReading(7, gpu, compute, memory, 1_782_864_000, peak, 80 * GIB)._replace(**fields)


@pytest.mark.parametrize(
    ("compute", "memory", "quadrant"),
    [
        (50, 50, Quadrant.BOTH), (49.99, 50, Quadrant.MEMORY), (50, 49.99, Quadrant.COMPUTE), (0, 0, Quadrant.LOW),
        (100, 0, Quadrant.COMPUTE), (0, 100, Quadrant.MEMORY),
    ],
)  # fmt: skip
def test_exactly_the_threshold_is_heavy(compute, memory, quadrant):
    assert classify(compute, memory) is quadrant


def test_the_words_of_the_threshold_are_the_constant():
    assert f"{HEAVY_PERCENT:.0f}\u202f%" in THRESHOLD_WORDS


@given(PERCENT, PERCENT)
def test_every_use_has_one_quadrant_and_needs_the_larger_of_both(compute, memory):
    use = sum_up([a_gpu(compute, memory)])
    assert use.quadrant is classify(compute, memory)
    assert use.used_percent == max(compute, memory)


def test_a_job_is_the_mean_of_its_gpus_and_the_largest_of_their_peaks():
    use = sum_up([a_gpu(100, 20, 16), a_gpu(0, 60, 48, "n1:1")])
    assert (use.gpus, use.compute_percent, use.memory_percent, use.quadrant) == (2, 50, 40, Quadrant.COMPUTE)
    # Each GPU strands by its own larger mean: 100 and 60.
    assert (use.used_percent, use.peak_memory_bytes) == (80, 48 * GIB)
    assert sum_up([a_gpu(), a_gpu(gib=None, gpu="n1:1")]).peak_memory_bytes is None
    with pytest.raises(ValueError, match="without"):
        sum_up([])


@pytest.mark.parametrize(
    ("compute", "gib", "fit"),
    [
        (5, 4, (Fit.MIG, "1g.10gb")),
        (5, 9, (Fit.MIG, "1g.10gb")),  # 90 % of ten
        (5, 9.01, (Fit.MIG, "1g.20gb")),
        (20, 9, (Fit.MIG, "2g.20gb")),  # more than 90 % of a seventh
        (30, 30, (Fit.MIG, "3g.40gb")),
        (45, 30, (Fit.MIG, "4g.40gb")),
        (60, 10, (Fit.WHOLE, "A100 80 GB")),
        (5, 60, (Fit.WHOLE, "A100 80 GB")),
    ],
)  # fmt: skip
def test_the_smallest_slice_that_holds_the_peak_and_the_mean_would_do(compute, gib, fit):
    assert find_fit(sum_up([a_gpu(compute, 100 * gib / 80, gib)]), A100) == fit


def test_a_smaller_gpu_must_be_fast_enough_of_the_same_vendor_and_there():
    use = sum_up([a_gpu(30, 40, 60, "n1:0"), a_gpu(20, 40, 60, "n2:0")])
    assert find_fit(use, H200, [A100, BY_SLUG["amd-mi250x-gcd-64gb"]]) == (Fit.SMALLER, "A100 80 GB")
    assert find_fit(use, H200, []) == (Fit.WHOLE, "H200 141 GB")
    fast = sum_up([a_gpu(60, 40, 60, "n1:0"), a_gpu(60, 40, 60, "n2:0")])  # an A100 has 312 of the H200's 989 TFLOP/s
    assert find_fit(fast, H200, [A100]) == (Fit.WHOLE, "H200 141 GB")


def test_two_to_a_gpu_where_it_cannot_be_cut():
    assert find_fit(sum_up([a_gpu(30, 30, 10)]), V100) == (Fit.SHARED, "two to a GPU")
    assert find_fit(sum_up([a_gpu(46, 30, 10)]), V100) == (Fit.WHOLE, "V100 32 GB")


def test_a_job_with_an_unused_gpu_needed_fewer_and_no_job_of_two_gets_a_slice():
    assert find_fit(sum_up([a_gpu(), a_gpu(0, 0.5, 0, "n1:1")]), A100) == (Fit.FEWER, "1 of 2")
    assert find_fit(sum_up([a_gpu(5, 5, 4), a_gpu(5, 5, 4, "n1:1")]), A100) == (Fit.WHOLE, "A100 80 GB")


def test_what_is_not_known_is_not_guessed():
    assert find_fit(sum_up([a_gpu(5, 5, 4)]), None) == (Fit.UNKNOWN, "")
    assert find_fit(sum_up([a_gpu(5, 5, None)]), A100) == (Fit.UNKNOWN, "")


@pytest.mark.parametrize(
    ("name", "memory", "slug"),
    [
        ("NVIDIA A100-SXM4-80GB", None, "nvidia-a100-80gb"),
        ("NVIDIA A100-PCIE-40GB", 42_949_672_960, "nvidia-a100-40gb"),
        ("a100", 85_899_345_920, "nvidia-a100-80gb"),
        ("a100", None, None),
        ("gpu:h200", None, "nvidia-h200-141gb"),
        ("NVIDIA H200", 150_754_820_096, "nvidia-h200-141gb"),
        ("NVIDIA A100-SXM4-80GB", 10_200_547_328, None),  # a slice of it
        ("Tesla K80", None, None),
        ("", 85_899_345_920, None),
    ],
)  # fmt: skip
def test_a_model_is_found_by_what_drivers_and_slurm_call_it(name, memory, slug):
    found = identify(name, memory)
    assert (found.slug if found else None) == slug


@pytest.mark.parametrize("one", ACCELERATORS, ids=lambda one: one.slug)
def test_slices_grow_and_none_is_the_whole_gpu(one):
    sizes = [(part.eighths, part.sevenths) for part in one.slices]
    assert sizes == sorted(sizes) and all(part.sevenths < 7 and part.eighths < 8 for part in one.slices)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({}, ""), ({"raw_job_id": 0}, "job_invalid"), ({"gpu": ""}, "gpu_invalid"), ({"gpu": "a\nb"}, "gpu_invalid"),
        ({"gpu": "0"}, "node_missing"), ({"gpu": "nvidia3"}, "node_missing"), ({"gpu": "0/7"}, "node_missing"),
        ({"gpu": "n1:0"}, ""), ({"gpu": "GPU-5fd4f087"}, ""),
        ({"compute_percent": 100.1}, "percent_out_of_range"), ({"memory_percent": -1.0}, "percent_out_of_range"),
        ({"compute_percent": float("nan")}, "percent_out_of_range"), ({"peak_memory_bytes": -1}, "memory_out_of_range"),
        ({"peak_memory_bytes": 81 * GIB}, "peak_over_total"), ({"model": "x" * 101}, "model_invalid"),
        ({"measured_s": 0}, "time_invalid"),
    ],
)  # fmt: skip
def test_a_reading_that_cannot_be_says_why(fields, fault):
    assert find_fault(a_gpu(**fields)) == fault
