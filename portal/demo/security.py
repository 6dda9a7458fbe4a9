"""What detectors found in the demo, and what InfoSec made of it: every state of an incident, most of them closed."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Final, NamedTuple

from portal.core import clock
from portal.demo import cast
from portal.demo.history import Act, Stage, person
from principals.actors import SYSTEM_ACTOR
from principals.models import Cluster, User
from security import services as security_services
from security.models import Incident
from security.services import ReportedFinding

_INFOSEC_HOURS: Final = {"triaged": 0.4, "contained": 2.5, "resolved": 30.0}
_HEX: Final = "0123456789abcdef"
_TRIAGE: Final = ("triaged",)
_CONTAIN: Final = ("triaged", "contained")
_RESOLVE: Final = ("triaged", "contained", "resolved")


class Case(NamedTuple):
    """Something found: when, of whom, what, and how far InfoSec took it (states, in order)."""

    hours_ago: float
    kind: str
    agent: str
    login: str
    host: str
    surface: str
    place: str
    title: str
    evidence: str
    path: Sequence[str] = ()
    severity: str = ""
    sightings: int = 1


_CASES: Final = (
    Case(1.2, "exposed_service", "aldana-notebook", "u0238", "login05", "network", "0.0.0.0:8888",
         "Notebook server open to every network, no password", "jupyter lab --ip=0.0.0.0 --port=8888 --no-browser",
         severity="critical"),
    Case(0.7, "exposed_secret", "quillon-dataset-builder", "u0611", "login03", "argv", "process arguments",
         "GitHub token in a command line", 'curl -sS -H "Authorization: token {key}" https://git.example.org/dispatches',
         _TRIAGE, sightings=14),
    Case(5.0, "unsafe_command", "ferrant-pipeline", "u0540", "login04", "process", "/n/ferrant/genomics",
         "Group folder opened to everybody", "chmod -R 777 /n/ferrant/genomics", _TRIAGE),
    Case(9.0, "unsafe_command", "lindqvist-unet", "u0377", "login01", "process", "login01",
         "Script from the web piped into a shell", "curl -fsSL https://get.example.org/install.sh | bash", sightings=6),
    Case(30.0, "polling_loop", "okafor-md-sweeper", "u0421", "login03", "scheduler", "squeue",
         "11 scheduler queries in 60 s, the limit is 6", "while squeue -j $ID | grep -q $ID; do sleep 5; done"),
    Case(74.0, "exposed_secret", "marlowe-finetune", "u0102", "login02", "job_output", "/n/marlowe/langmodel/slurm.out",
         "Experiment tracker's key in job output", "WANDB_API_KEY={key}", _CONTAIN),
    Case(100.0, "scratch_evasion", "aldana-mesher", "u0231", "login05", "file", "/dev/shm",  # noqa: S108
         "Memory file system used as scratch, 212 GB", "cp -r case_07 /dev/shm/case_07", _CONTAIN),
    Case(150.0, "login_node_compute", "", "u0768", "login05", "process", "login05",
         "41 CPU-minutes of computing on a login node", "python -u sweep.py --workers 16", _RESOLVE),
    Case(220.0, "exposed_secret", "okafor-docking", "u0455", "login02", "history", "~/.bash_history",
         "Model registry token in shell history", "export HF_TOKEN={key}", _RESOLVE, sightings=2),
    Case(310.0, "unsafe_command", "okafor-md-sweeper", "u0421", "login04", "process", "login04",
         "Recursive delete with an unset variable", "rm -rf $OUT/", (*_TRIAGE, "false_alarm")),
    Case(380.0, "polling_loop", "vesterholt-resume-loop", "u0733", "login02", "scheduler", "sacct",
         "38 scheduler queries in 60 s, the limit is 6", "watch -n 1 sacct -j $ID", _RESOLVE, sightings=5),
    Case(460.0, "sandbox_widening", "brannigan-ci", "u0682", "login01", "file", "settings.json",
         "Write access to the whole home added", '{{"writable": ["~"]}}', (*_TRIAGE, "accepted")),
    Case(540.0, "exposed_secret", "marlowe-finetune", "u0102", "login01", "argv", "process arguments",
         "Cloud key in a command line", "upload --password {key} s3://marlowe", _RESOLVE, sightings=3),
)  # fmt: skip
_REASONS: Final = {
    "resolved": "Its owner fixed it; looked again, nothing left.",
    "false_alarm": "The variable was set by the line before.",
    "accepted": "Needed by the build; the agent runs in a container of its own.",
}


def acts(stage: Stage) -> Iterator[Act]:
    """Tell what was found when, and what InfoSec did about it."""
    for number, case in enumerate(_CASES):
        found = stage.now - timedelta(hours=case.hours_ago)
        evidence = case.evidence.format(key=_fake_key(stage.rng))
        for sighting in range(case.sightings):
            seen = found + timedelta(minutes=2 * sighting)
            yield Act(min(seen, stage.now), partial(report, stage.cluster, case, evidence))
        first = found + timedelta(minutes=1)
        yield Act(first, partial(_take, case, cast.INFOSEC_TEAM[number % 2]))
        for state in case.path:
            moved = found + timedelta(hours=_INFOSEC_HOURS.get(state, 6.0) * stage.rng.uniform(0.6, 1.2))
            yield Act(min(moved, stage.now), partial(_move, case, state))


def _fake_key(rng: Random) -> str:
    return "ghp_" + "".join(rng.choices(_HEX, k=36))


def report(cluster: Cluster, case: Case, evidence: str, *, at: datetime | None = None) -> None:
    """Report a finding as the collector would."""
    security_services.report_findings(
        actor=SYSTEM_ACTOR,
        cluster=cluster,
        findings=[
            ReportedFinding(
                kind=case.kind, detector="collector", occurred=at or clock.now(), title=case.title,
                severity=case.severity, login=case.login, agent=case.agent, host=case.host, surface=case.surface,
                place=case.place, evidence=evidence, method="process tree", confidence=0.98,
            )
        ],
    )  # fmt: skip


def _incident(case: Case) -> Incident:
    return Incident.objects.filter(kind=case.kind, title=case.title).latest("pk")


def _take(case: Case, login: str) -> None:
    if case.path:
        security_services.assign(actor=person(login), incident=_incident(case), to=User.objects.get(username=login))


def _move(case: Case, state: str) -> None:
    security_services.move_incident(
        actor=person(cast.INFOSEC), incident=_incident(case), to=state, reason=_REASONS.get(state, "")
    )


def report_one(rng: Random, cluster: Cluster) -> None:
    """Report something a detector saw just now: a case as before, of an agent that works."""
    case = rng.choice([case for case in _CASES if case.severity != "critical" and case.agent])
    report(cluster, case, case.evidence.format(key=_fake_key(rng)))
