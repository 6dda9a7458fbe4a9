"""Accounting text as `TZ=UTC sacct -a -D -P` prints it, with a typed column behind each that people write."""

from collections.abc import Iterator, Mapping
from typing import Final

from portal.demo.paper.jobs import CANCELLED, Batch, Run, limit_min
from portal.demo.paper.population import Person
from portal.demo.paper.work import submit_line
from portal.demo.paper.writing import span_text, time_text

CLUSTER: Final = "cannon"
HEADER: Final = (
    "JobID|JobIDRaw|User|JobName|Account|Cluster|Partition|QOS|Eligible|Start|End|Elapsed|Timelimit|Comment|Submit|"
    "NNodes|NCPUS|ReqCPUS|ReqMem|AllocTRES|NodeList|UID|WorkDir|State|SubmitLine|ExitCode\n"
)
GPU: Final = "h100"
_FIRST_ID: Final = 31_000_000
_NODES: Final = {"shared": ("holy7c", 900), "bigmem": ("holybig", 40), "test": ("holytest", 8), "gpu": ("holygpu", 500)}
_EXITS: Final = {"COMPLETED": "0:0", "TIMEOUT": "0:0", CANCELLED: "0:15"}


class Accounting:
    """Write jobs as lines, each submission under the next job ids."""

    def __init__(self, people: Mapping[int, Person]) -> None:
        self._people, self._next_id = people, _FIRST_ID

    def take_ids(self, size: int) -> list[tuple[int, str]]:
        """Return the raw id of each job of a submission and the one that users see; an array has one of its own."""
        base = self._next_id
        if size == 1:
            self._next_id += 1
            return [(base, str(base))]
        self._next_id += size
        # The last task goes under the number of the array itself.
        return [(base + 1 + task if task < size - 1 else base, f"{base}_{task}") for task in range(size)]

    def lines(self, batch: Batch, runs: list[Run], ids: list[tuple[int, str]], failed: str) -> Iterator[str]:
        """Yield a line a job; what failed did so with the exit code `failed`."""
        act, work, person = batch.act, batch.work, self._people[batch.act.person]
        submitted = time_text(act.at_s)
        name, nodes = _NODES[batch.partition]
        gres = f",gres/gpu:{GPU}={batch.gpus},gres/gpu={batch.gpus}" if batch.gpus else ""
        tres = f"billing={batch.cpus},cpu={batch.cpus}{gres},mem={batch.mem_gib}G,node=1"
        who = f"{person.login}|{work.name}|{person.account}|{CLUSTER}|{batch.partition}|normal|{submitted}"
        limit = span_text(limit_min(batch, runs) * 60)
        asked = f"{limit}||{submitted}|1|{batch.cpus}|{batch.cpus}|{batch.mem_gib}G"
        line = submit_line(work, batch.partition, batch.mem_gib, act.size)
        for run, (raw, shown) in zip(runs, ids, strict=True):
            started = run.start_s is not None
            begun = time_text(run.start_s) if run.start_s is not None else "None"
            held = f"{tres}|{name}{1 + raw % nodes:04}" if started else "|None assigned"
            state = f"{CANCELLED} by {person.uid}" if run.state == CANCELLED else run.state
            exit_code = _EXITS.get(run.state, failed) if started else "0:0"
            yield (
                f"{shown}|{raw}|{who}|{begun}|{time_text(run.end_s)}|{span_text(run.elapsed_s)}|{asked}|{held}|"
                f"{person.uid}|{work.folder}|{state}|{line}|{exit_code}\n"
            )
