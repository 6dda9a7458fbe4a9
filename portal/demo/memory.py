"""What the demo learned: lessons from failures, in every scope, some confirmed by others, one waiting for the PI."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple

from memory import services as memory_services
from memory.models import Lesson
from memory.services import LessonContent
from portal.demo import cast
from portal.demo.history import Act, Stage, person
from principals.models import Lab


class Told(NamedTuple):
    """A lesson: whose, for whom, of which failure, why and what helps; who else found that it holds."""

    days_ago: float
    by: str
    scope: str
    error: str
    cause: str
    fix: str
    confirmed_by: tuple[str, ...] = ()


_LESSONS: Final = (
    Told(22, cast.STAFF, "cluster", "slurmstepd: error: Detected 1 oom_kill event in StepId=48198820.batch.",
         "The job used more memory than it asked for.",
         "Ask for the peak that sacct shows as MaxRSS plus a fifth, with --mem.", ("u0455", "u0102")),
    Told(20, cast.STAFF, "cluster", "sbatch: error: Requested node configuration is not available",
         "The partition has no node with so many GPUs.", "GPU nodes have 4 GPUs each: ask for two nodes."),
    Told(16, "u0398", "lab", "CUDA error: no kernel image is available for execution on the device",
         "The program was built for an older GPU generation.",
         "Build with the architecture of the node: sm_80 on gpu_a100, sm_90 on gpu_h200.", ("u0421",)),
    Told(12, "u0421", "project", "Step 4310: One or more atoms moved too far. LINCS WARNING",
         "The time step is too long after the temperature jump.", "Equilibrate 100 ps with a 1 fs step first."),
    Told(9, "u0102", "project", "torch.distributed.elastic: RendezvousTimeoutError: rendezvous timed out after 600 s",
         "The ranks of a second node could not reach the first one's port.",
         "Set MASTER_ADDR to the first host of scontrol show hostnames."),
    Told(3, "u0455", "lab", "nvcc fatal: unsupported GNU version: gcc later than 13",
         "CUDA 12.4 needs gcc 13 or older.", "Load gcc/13 before cuda/12.4."),
)  # fmt: skip


def acts(stage: Stage) -> Iterator[Act]:
    """Tell when each lesson was recorded and confirmed."""
    for told in _LESSONS:
        at = stage.now - timedelta(days=told.days_ago)
        yield Act(at, partial(_record, stage, told))
        for place, login in enumerate(told.confirmed_by, start=1):
            yield Act(at + timedelta(hours=30 * place), partial(_confirm, told, login))


def _record(stage: Stage, told: Told) -> None:
    lab = cast.LAB_OF.get(told.by)
    memory_services.record_lesson(
        actor=person(told.by),
        content=LessonContent(error_text=told.error, cause=told.cause, fix=told.fix),
        scope=told.scope,
        lab=Lab.objects.get(name=lab.name) if lab else None,
        cluster=stage.cluster if told.scope == "cluster" else None,
    )


def _confirm(told: Told, login: str) -> None:
    lesson = Lesson.objects.get(cause=told.cause, scope=told.scope)
    memory_services.confirm_lesson(actor=person(login), lesson=lesson)
