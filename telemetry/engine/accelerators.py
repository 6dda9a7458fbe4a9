"""Accelerators that Slurm hands out: what each has, and which slices it can be cut into.

Memory and dense FP16 throughput of one Slurm GPU (an MI250X is two) are vendors' published figures, as collected in
https://github.com/stas00/ml-engineering (compute/accelerator) and the datasheets it names. Slices are those of NVIDIA's
"Multi-Instance GPU User Guide", Supported MIG Profiles: sevenths of the multiprocessors, eighths of the memory.
"""

from typing import Final, NamedTuple


class Slice(NamedTuple):
    """A MIG profile: its name, its sevenths of the multiprocessors and eighths of the memory."""

    name: str
    sevenths: int
    eighths: int


class Accelerator(NamedTuple):
    """One model. `words` are what of its name tells it from others; `fp16_tflops` is dense."""

    slug: str
    name: str
    vendor: str
    words: tuple[str, ...]
    memory_gib: int
    fp16_tflops: float
    slices: tuple[Slice, ...] = ()

    @property
    def memory_bytes(self) -> int:
        return self.memory_gib * 2**30


_WHOLE_FROM: Final = 0.7  # drivers report a few percent less than the name says; the largest slice has half
# (sevenths, eighths) of the profiles that every seven-way GPU has; the whole GPU is none.
_SEVEN_WAYS: Final = ((1, 1), (1, 2), (2, 2), (3, 4), (4, 4))


def _slices(*gigabytes: int) -> tuple[Slice, ...]:
    """Name the profiles as the guide does, by the gigabytes it rounds each to."""
    return tuple(
        Slice(f"{sevenths}g.{size}gb", sevenths, eighths)
        for (sevenths, eighths), size in zip(_SEVEN_WAYS, gigabytes, strict=True)
    )


ACCELERATORS: Final = (
    Accelerator("nvidia-v100-16gb", "V100 16 GB", "nvidia", ("v100",), 16, 125),
    Accelerator("nvidia-v100-32gb", "V100 32 GB", "nvidia", ("v100",), 32, 125),
    Accelerator("nvidia-a100-40gb", "A100 40 GB", "nvidia", ("a100",), 40, 312, _slices(5, 10, 10, 20, 20)),
    Accelerator("nvidia-a100-80gb", "A100 80 GB", "nvidia", ("a100",), 80, 312, _slices(10, 20, 20, 40, 40)),
    Accelerator("nvidia-l40s-48gb", "L40S 48 GB", "nvidia", ("l40s",), 48, 362),
    Accelerator("nvidia-h100-80gb", "H100 80 GB", "nvidia", ("h100",), 80, 989, _slices(10, 20, 20, 40, 40)),
    Accelerator("nvidia-h200-141gb", "H200 141 GB", "nvidia", ("h200",), 141, 989, _slices(18, 35, 35, 71, 71)),
    Accelerator("nvidia-b200-180gb", "B200 180 GB", "nvidia", ("b200",), 180, 2250, _slices(23, 45, 45, 90, 90)),
    Accelerator("nvidia-b300-288gb", "B300 288 GB", "nvidia", ("b300",), 288, 2250, _slices(34, 67, 67, 135, 135)),
    Accelerator("amd-mi250x-gcd-64gb", "MI250X, one of its two GPUs", "amd", ("mi250x",), 64, 191.5),
    Accelerator("amd-mi300x-192gb", "MI300X 192 GB", "amd", ("mi300x",), 192, 1307.4),
)  # fmt: skip


def identify(name: str, memory_bytes: int | None = None) -> Accelerator | None:
    """Find a model by what drivers or Slurm call it; None where it is not in the table.

    `NVIDIA A100-SXM4-80GB`, `a100` and `gpu:a100` are all A100s: of several sizes the one whose memory is nearest to
    `memory_bytes` is taken, or the one whose size the name says; without either, none. A device with much less memory
    than its model is a slice of it, and no model of the table.
    """
    words = _words_of(name)
    found = _all_of(words)
    if memory_bytes:
        near = min(found, key=lambda one: abs(one.memory_bytes - memory_bytes), default=None)
        return near if near is not None and memory_bytes > near.memory_bytes * _WHOLE_FROM else None
    named = [one for one in found if f"{one.memory_gib}gb" in words] if len(found) > 1 else found
    return named[0] if named else None


def smallest_of(name: str) -> Accelerator | None:
    """Return the model of that name, of several sizes the smallest: what fits it fits them all."""
    return identify(name) or min(_all_of(_words_of(name)), key=lambda one: one.memory_gib, default=None)


def _words_of(name: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in name.lower()).split()


def _all_of(words: list[str]) -> list[Accelerator]:
    return [one for one in ACCELERATORS if any(word in words for word in one.words)]
