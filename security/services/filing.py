"""Filing findings: each goes to the current incident of its key, reopens it, or opens one."""

from collections.abc import Iterable
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Count, Max

from principals.actors import Actor
from principals.models import Cluster
from security import events
from security.engine import incidents as rules
from security.engine import recurrence
from security.models import Finding, Incident, IncidentEvent
from security.models.choices import Severity, State
from security.services import news
from security.services.reports import CleanFinding
from security.services.subjects import Subject

OPENED, JOINED, REOPENED = "opened", "joined", "reopened"


class File:
    """The incidents one chunk of findings touches, inside one transaction."""

    def __init__(self, actor: Actor, cluster: Cluster, at: datetime, keys: Iterable[str]) -> None:
        self.actor, self.cluster, self.at = actor, cluster, at
        current = Incident.objects.filter(dedup_key__in=set(keys), is_current=True)
        self._current = {incident.dedup_key: incident for incident in current}
        self.incidents: dict[int, Incident] = {}
        self._findings: list[Finding] = []
        self._lines: list[IncidentEvent] = []
        self._names: dict[int, str] = {}
        self._newest: dict[int, datetime] = {}

    def add(self, finding: CleanFinding, subject: Subject, key: str) -> tuple[Incident, str]:
        """Put one finding on its incident; return it and how: opened, joined or reopened."""
        incident, how = self._incident_for(finding, subject)
        if how == JOINED:
            self._raise_severity(incident, finding.severity)
        self.incidents[incident.pk] = incident
        if self._names.get(incident.pk) != events.INCIDENT_OPENED:
            self._names[incident.pk] = events.INCIDENT_OPENED if how == OPENED else events.INCIDENT_CHANGED
        occurred = finding.said.occurred
        self._newest[incident.pk] = max(occurred, self._newest.get(incident.pk, occurred))
        self._findings.append(self._row(incident, finding, subject, key))
        return incident, how

    def close(self) -> None:
        """Write findings and timeline, recount the touched incidents, tell the news."""
        # Locked before anything is counted: a count that did not see another batch's findings must not be the last.
        touched = Incident.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=self.incidents)
        touched = touched.select_related("cluster_user", "agent").order_by("pk")
        by_id = {incident.pk: incident for incident in touched}
        # Equal findings of two batches at once: the second row is left out, its incident is the same.
        Finding.objects.bulk_create(self._findings, ignore_conflicts=True)
        IncidentEvent.objects.bulk_create(self._lines)
        seen = Finding.objects.filter(incident__in=by_id).values("incident")
        for row in seen.annotate(count=Count("pk"), last=Max("occurred")):
            by_id[row["incident"]].sightings, by_id[row["incident"]].last_seen = row["count"], row["last"]
        Incident.objects.bulk_update(by_id.values(), ["sightings", "last_seen"])
        news.announce([news.tell(each, name=self._names[pk], at=self._newest[pk]) for pk, each in by_id.items()])

    def _incident_for(self, finding: CleanFinding, subject: Subject) -> tuple[Incident, str]:
        current = self._current.get(finding.dedup_key(self.cluster.name))
        if current is None:
            return self._open(finding, subject)
        what = recurrence.place_finding(
            rules.State(current.state), current.closed_at, finding.said.occurred,
            found=rules.Severity(finding.severity), known=rules.Severity(current.severity),
        )  # fmt: skip
        if what is recurrence.Recurrence.OPEN_NEW:
            Incident.objects.filter(pk=current.pk, is_current=True).update(is_current=False)
            return self._open(finding, subject)
        if what is recurrence.Recurrence.REOPEN:
            return current, self._reopen(current, finding)
        return current, JOINED

    def _open(self, finding: CleanFinding, subject: Subject) -> tuple[Incident, str]:
        """Open an incident, or join the one that a simultaneous finding opened first."""
        said, severity, key = finding.said, finding.severity, finding.dedup_key(self.cluster.name)
        fresh = Incident(
            dedup_key=key, title=finding.title or _title(finding), kind=said.kind, severity=severity,
            cluster=self.cluster, host=said.host, lab_id=subject.lab_id, agent_id=subject.agent_id,
            cluster_user_id=subject.cluster_user_id, fingerprint=finding.fingerprint, opened=self.at,
            due_at=rules.next_deadline(rules.Severity(severity), rules.State.NEW, self.at),
        )  # fmt: skip
        try:
            with transaction.atomic():
                fresh.save(force_insert=True)
        except IntegrityError:
            self._current[key] = Incident.objects.get(dedup_key=key, is_current=True)
            return self._current[key], JOINED
        self._current[key] = fresh
        self._note(fresh, IncidentEvent.Kind.OPENED, new=State.NEW)
        return fresh, OPENED

    def _reopen(self, incident: Incident, finding: CleanFinding) -> str:
        """Open a closed incident again; only one of two simultaneous findings does."""
        old, severity = incident.state, _worse(incident.severity, finding.severity)
        fresh = {
            "state": State.REOPENED, "severity": severity, "reopened": self.at, "triaged_at": None,
            "contained_at": None, "closed_at": None, "closed_reason": "",
            "due_at": rules.next_deadline(rules.Severity(severity), rules.State.REOPENED, self.at),
        }  # fmt: skip
        if not Incident.objects.filter(pk=incident.pk, state=old).update(**fresh):
            incident.refresh_from_db()
            return JOINED
        for name, value in fresh.items():
            setattr(incident, name, value)
        self._note(incident, IncidentEvent.Kind.MOVED, old=old, new=State.REOPENED, text="It was seen again.")
        return REOPENED

    def _raise_severity(self, incident: Incident, severity: Severity) -> None:
        old = incident.severity
        if not incident.is_open or _worse(old, severity) == old:
            return
        due = incident.next_due(severity=severity)
        if Incident.objects.filter(pk=incident.pk, severity=old, state=incident.state).update(
            severity=severity, due_at=due
        ):
            incident.severity, incident.due_at = severity, due
            self._note(incident, IncidentEvent.Kind.RAISED, old=old, new=severity)

    def _note(self, incident: Incident, kind: str, *, old: str = "", new: str = "", text: str = "") -> None:
        self._lines.append(news.line(self.actor, incident, kind, at=self.at, old=old, new=new, text=text))

    def _row(self, incident: Incident, finding: CleanFinding, subject: Subject, key: str) -> Finding:
        said = finding.said
        return Finding(
            incident=incident, kind=said.kind, severity=finding.severity, is_rated=bool(said.severity),
            title=finding.title, reasons=finding.reasons, cluster=self.cluster, host=said.host,
            cluster_user_id=subject.cluster_user_id, lab_id=subject.lab_id, agent_id=subject.agent_id,
            session_id=subject.session_id, method=subject.method, confidence=said.confidence,
            detector=said.detector, surface=said.surface, place=finding.place, readable_by=finding.readable_by,
            evidence=finding.evidence, masks=finding.masks, preview=finding.preview,
            fingerprint=finding.fingerprint, occurred=said.occurred, received=self.at,
            source=self.actor.ref.label, dedup_key=finding.dedup_key(self.cluster.name), key=key,
        )  # fmt: skip


def _title(finding: CleanFinding) -> str:
    label = rules.KINDS[rules.Kind(finding.said.kind)].label
    return f"{label} on {finding.said.host}" if finding.said.host else label


def _worse(one: str, other: str) -> Severity:
    return Severity(other if recurrence.is_worse(rules.Severity(other), rules.Severity(one)) else one)
