import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.signature import (
    VERSION,
    exact_signature,
    extract_parameters,
    kernel_of,
    normalise,
    sign,
    strongest_line,
)


@pytest.mark.parametrize(
    ("raw", "normalised"),
    [
        ("\x1b[31merror\x1b[0m: stop", "error: stop"),
        ("see https://example.org/a?b=1 now", "see <url> now"),
        ("mail u0421@example.org", "mail <mail>"),
        ("at 2021-05-11T12:06:17 end", "at <time> end"),
        ("[E1206 18:44:12.715 x.cpp:607] stop", "[<time> x.cpp:<n>] stop"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id <uuid>"),
        ("connect to 192.0.2.19:5432", "connect to <address>"),
        ("va 0x7f9f745cea80 gone", "va <address> gone"),
        ("/home/u1/envs/lib/libstdc++.so.6: bad", "libstdc++.so.<n>: bad"),
        ('File "torch/utils/data/dataloader.py", line 175', 'File "dataloader.py", line <n>'),
        ("module gcc/12.3.0 unknown", "module gcc/<n> unknown"),
        ("[rank3]: stop", "<rank> stop"),
        ("worker (pid 16757) died", "worker (pid <n>) died"),
        ("JOB 86 ON c0700a-s1 CANCELLED", "JOB <n> ON <node> CANCELLED"),
        ("nodes cn[001-004,7] down", "nodes <node> down"),
        ("commit 87e26e1234edcb484f75b2371528c24dad57010a", "commit <hash>"),
        ("hdf5-6p2ibf72w524cs7alvk6skojh7c6t3oy", "hdf5-<hash>"),
        ("allocate 20.00 MiB", "allocate <size>"),
        ("ran for 600061 milliseconds", "ran for <duration>"),
        ("satisfy the 36 slots", "satisfy the <n> slots"),
        ("[Errno 28] No space", "[Errno 28] No space"),
        ("exit status (137)", "exit status (137)"),
        ("exited with exit code 1:0", "exited with exit code 1:0"),
        ("killed by signal 9", "killed by signal 9"),
        ("code=35(cudaError)", "code=35(cudaError)"),
        ("version `GLIBCXX_3.4.29' not found", "version `GLIBCXX_<v>' not found"),
        ("capability sm_120 is", "capability sm_<v> is"),
    ],
)
def test_what_varies_is_replaced_and_what_decides_is_kept(raw, normalised):
    assert normalise(raw) == normalised


@given(st.text(max_size=120))
def test_no_text_makes_it_fail_and_a_signature_is_twelve_digits(text):
    signature = sign(text)
    assert len(signature.exact) == 12
    assert int(signature.exact, 16) >= 0
    assert signature.version == VERSION
    assert signature.exact == exact_signature(text)


words = st.sampled_from(
    ["RuntimeError:", "node-07", "on", "12", "/a/b/c.py", "failed", "sm_90", "GiB", "exit code", "7"]
)


@given(st.lists(words, max_size=12).map(" ".join))
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "slurmstepd: error: *** JOB 86 ON c07a-s1 CANCELLED AT 2021-05-11T12:06:17 DUE TO TIME LIMIT ***",
            "slurmstepd: error: *** JOB 6 ON comp-2-4 CANCELLED AT 2017-07-12T15:20:54 DUE TO TIME LIMIT ***",
        ),
        (
            "RuntimeError: DataLoader worker (pid 22048) is killed by signal: Killed.",
            'File "x/y/dataloader.py", line 9, in handler\n'
            "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed",
        ),
        ("OSError: [Errno 28] No space left on device", "IOError: [Errno 28] No space left on device"),
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
            "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB",
        ),
        (
            "ImportError: /a/b/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /x/y.so)",
            "/usr/lib64/libstdc++.so.6: version `GLIBCXX_3.4.20' not found (required by /opt/z/w.so)",
        ),
    ],
)
def test_one_failure_of_two_reporters_has_one_signature(one, other):
    assert exact_signature(one) == exact_signature(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("OSError: [Errno 28] No space left on device", "OSError: [Errno 122] Disk quota exceeded"),
        ("task exited with exit code 137", "task exited with exit code 139"),
        ("killed by signal: Killed", "killed by signal: Bus error"),
        ("libstdc++.so.6: version `GLIBCXX_3.4.29' not found", "libc.so.6: version `GLIBC_2.34' not found"),
    ],
)
def test_different_failures_keep_different_signatures(one, other):
    assert exact_signature(one) != exact_signature(other)


def test_versions_are_kept_beside_the_signature():
    assert extract_parameters("version `GLIBCXX_3.4.29' on sm_120") == ("GLIBCXX_3.4.29", "sm_120")
    assert sign("no kernel for sm_90").parameters == ("sm_90",)


def test_the_strongest_line_is_the_error_and_not_its_traceback():
    text = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n'
        "    loader.error_count()\n"
        "RuntimeError: CUDA error: device-side assert triggered\n"
        "warning: core dumps are off\n"
    )
    assert strongest_line(text) == "RuntimeError: CUDA error: device-side assert triggered"


def test_an_empty_text_has_an_empty_kernel():
    assert strongest_line("\n \n") == ""
    assert sign("").kernel == ""


def test_a_kernel_is_never_cut_to_nothing():
    assert kernel_of("Error:") == "error"


@pytest.mark.parametrize("unit", ["a/b/", "[", "1", "a.", "0-", "a-0-", "x@", "C: ", "error: ", "node-1 "])
def test_a_long_line_takes_linear_time(unit):
    start = time.perf_counter()
    sign(unit * (32_000 // len(unit)))
    assert time.perf_counter() - start < 5  # a tenth of a second on an idle core
