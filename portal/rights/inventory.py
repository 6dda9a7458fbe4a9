"""What is held about a person: every table, for what, how long, how its rows lead to them, and what an erasure does.

A table is here or in `portal.rights.not_keyed`; a test fails over one that is in neither. The page, the export, the
erasure and the list in docs/review-board.md are all made of this.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from django.apps import apps
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from portal.core.models import LiveEventTopic
from principals.models import Agent, ClusterUser, User
from telemetry.models import Job

Finder = Callable[[User], Q]


class OnErase(StrEnum):
    """What an erasure does with the rows of a table."""

    DELETE = "deleted"
    KEEP = "kept under a pseudonym"  # as accounting, or as proof; texts in `blank` are emptied
    STAY = "kept until their term"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One table. `paths` lead from a row to a person (or `find` says which rows), `hidden` is never given out.

    Paths go forward alone, so that a row is found once.

    `own` says which of the rows an erasure deletes or empties, where not all of them are the person's own.
    """

    table: str
    purpose: str
    kept: str
    paths: tuple[str, ...] = ()
    find: Finder | None = None
    own: Finder | None = None
    on_erase: OnErase = OnErase.DELETE
    blank: Mapping[str, Any] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()

    @property
    def model(self) -> type[Model]:
        """Its model."""
        return apps.get_model(self.table)

    @property
    def slug(self) -> str:
        """Its name in an address."""
        return self.table.lower().replace(".", "-")

    @property
    def title(self) -> str:
        """Its name for people."""
        name = str(self.model._meta.verbose_name_plural)
        return TITLES.get(self.table) or name[:1].upper() + name[1:]

    def rows(self, person: User) -> QuerySet[Any]:
        """Return its rows about a person."""
        where = self.find(person) if self.find else Q()
        for path in self.paths:
            where |= Q(**{path: person})
        return self.model._base_manager.filter(where)

    def own_rows(self, person: User) -> QuerySet[Any]:
        """Return those of them that an erasure deletes or empties."""
        return self.model._base_manager.filter(self.own(person)) if self.own else self.rows(person)

    def columns(self) -> list[str]:
        """Return the columns that are given out."""
        return [one.attname for one in self.model._meta.concrete_fields if one.attname not in self.hidden]

    def records(self, person: User) -> Iterator[dict[str, Any]]:
        """Yield its rows about a person as they are given out."""
        yield from self.rows(person).order_by("pk").values(*self.columns()).iterator(chunk_size=1000)


def _agents(person: User) -> QuerySet[Agent, int]:
    return Agent.objects.filter(owner=person).values_list("pk", flat=True)


def _holds_on(person: User) -> Q:
    own = Q(subject_kind__in=("user", "owner"), subject_id=person.pk)
    return own | Q(subject_kind="agent", subject_id__in=_agents(person))


def _holds(person: User) -> Q:
    return _holds_on(person) | Q(placed_by=person.username)


def _kill_switches(person: User) -> Q:
    on_them = Q(target_kind__in=("user", "owner"), target_id=person.pk)
    on_agents = Q(target_kind="agent", target_id__in=_agents(person))
    return on_them | on_agents | Q(asked_by=person) | Q(decided_by=person) | Q(ended_by=person)


def _audit(person: User) -> Q:
    own = Q(actor_kind="user", actor_id=str(person.pk)) | Q(on_behalf_of=person.username)
    agents = [str(pk) for pk in _agents(person)]
    return own | Q(object_kind="user", object_id=str(person.pk)) | Q(object_kind="agent", object_id__in=agents)


def _logins(person: User) -> Q:
    return Q(user_key__in=ClusterUser.objects.filter(user=person).values("pk"))


def _work(person: User) -> Q:
    """Ids in full: of two joins with an `or` between no index is used."""
    logins = list(ClusterUser.objects.filter(user=person).values_list("pk", flat=True))
    return Q(cluster_user__in=logins) | Q(agent__in=list(_agents(person)))


def _live(person: User) -> Q:
    return Q(Exists(LiveEventTopic.objects.filter(_live_topics(person), event=OuterRef("pk"))))


def _live_topics(person: User) -> Q:
    return Q(topic__in=(f"user:{person.pk}", f"notices:{person.pk}"))


def _outputs(person: User) -> Q:
    theirs = Job.objects.filter(cluster_user__user=person, cluster=OuterRef("cluster"), raw_id=OuterRef("raw_id"))
    return Q(Exists(theirs))


def _batches(person: User) -> Q:
    return Q(sender_kind="user", sender_id=str(person.pk))


_WHILE: Final = "while the account stands"
_ACCOUNTING: Final = "until the site deletes it: Slurm’s accounting"
_SECRET: Final = ("digest", "pepper")

# Where Django's own word for a table would tell people little.
TITLES: Final[dict[str, str]] = {
    "principals.User": "Account",
    "principals.ClusterUser": "Login names",
    "principals.AgentSession": "Sessions",
    "principals.SessionCheckIn": "Check-ins of sessions",
    "principals.KillSwitch": "Kill switches",
    "principals.DataAccess": "Who opened what",
    "policies.AupAcceptance": "Acceptances of the AUP",
    "telemetry.JobGpu": "GPUs of jobs",
    "telemetry.JobGpuUse": "Use of GPUs",
    "telemetry.RollupDay": "Sums by day",
    "telemetry.RollupUser": "Sums by user",
    "telemetry.RollupDirty": "Sums to be made",
    "telemetry.ActivityDirty": "Days to be added up",
    "telemetry.SchedulerCalls": "Calls of the scheduler",
    "telemetry.HarnessReading": "What harnesses told",
    "telemetry.HarnessDay": "What harnesses told, by day",
    "memory.LessonEvidence": "Words on lessons",
    "core.LiveEvent": "News",
    "core.LiveEventTopic": "Addresses of news",
}

INVENTORY: Final[tuple[Holding, ...]] = (
    # --- who you are -------------------------------------------------------------------------------------
    Holding(table="principals.User", find=lambda person: Q(pk=person.pk), purpose="your account here", kept=_WHILE,
            on_erase=OnErase.KEEP, hidden=("password",)),
    Holding(table="principals.SignInIdentity", paths=("user",), purpose="to know you when you sign in", kept=_WHILE),
    Holding(table="principals.User_groups", paths=("user",), purpose="groups of the account", kept=_WHILE),
    Holding(table="principals.User_user_permissions", paths=("user",), purpose="rights of the account", kept=_WHILE),
    Holding(table="guardian.UserObjectPermission", paths=("user",), purpose="labs you were let look at", kept=_WHILE),
    Holding(table="account.EmailAddress", paths=("user",), purpose="addresses that a provider told", kept=_WHILE),
    Holding(table="account.EmailConfirmation", paths=("email_address__user",), purpose="proof of an address",
            kept=_WHILE, hidden=("key",)),
    Holding(table="socialaccount.SocialAccount", paths=("user",), purpose="the account at a provider", kept=_WHILE),
    Holding(table="socialaccount.SocialToken", paths=("account__user",), purpose="not used: none is stored",
            kept=_WHILE, hidden=("token", "token_secret")),
    Holding(table="mfa.Authenticator", paths=("user",), purpose="your second factor", kept="until you remove it",
            hidden=("data",)),
    Holding(table="principals.LabMembership", paths=("user",), purpose="your place in labs", kept=_WHILE),
    Holding(table="principals.Lab", paths=("low_risk_rule_by",), on_erase=OnErase.KEEP,
            purpose="labs for which you let agents of low risk in", kept="while the rule stands"),
    Holding(table="principals.ClusterUser", paths=("user",), purpose="your login names on clusters",
            kept=_ACCOUNTING, on_erase=OnErase.KEEP),
    Holding(table="principals.Association", paths=("cluster_user__user",), on_erase=OnErase.KEEP,
            purpose="Slurm accounts you may charge", kept=_ACCOUNTING),
    # --- your agents -------------------------------------------------------------------------------------
    Holding(table="principals.Agent", paths=("owner", "requested_by"), on_erase=OnErase.KEEP,
            purpose="agents that you answer for or registered", kept="until the site deletes it"),
    Holding(table="principals.AgentApproval", paths=("by", "agent__owner"), on_erase=OnErase.KEEP,
            purpose="who approved which agent", kept="with the agent"),
    Holding(table="principals.AgentToken", paths=("agent__owner", "created_by"), on_erase=OnErase.KEEP,
            purpose="tokens of your agents; of the secret a digest alone", kept="with the agent",
            own=lambda person: Q(agent__owner=person), blank={"label": ""}, hidden=_SECRET),
    Holding(table="principals.DeviceLogin", paths=("agent__owner", "decided_by"), kept="some minutes and an hour",
            hidden=("device_digest", "user_digest"), purpose="devices that asked by code for a token of an agent"),
    Holding(table="principals.ServiceToken", paths=("created_by",), on_erase=OnErase.KEEP,
            purpose="tokens of site automation that you made", kept="with the service", hidden=_SECRET),
    Holding(table="principals.AgentSession", find=_work,
            purpose="when and where agents worked under your login name", kept="400 days; declared ones longer"),
    Holding(table="principals.SessionDeclaration", paths=("session__cluster_user__user", "session__agent__owner"),
            purpose="what a harness declared of such a session", kept="with the session"),
    Holding(table="principals.SessionCheckIn", paths=("cluster_user__user", "agent__owner"),
            purpose="check-ins of your agents: host, process, model, label of the folder", kept="with the session"),
    Holding(table="principals.SessionClaim", paths=("by", "agent__owner"), own=lambda person: Q(agent__owner=person),
            purpose="sessions that you, or for your agents somebody, claimed", kept="with the agent"),
    Holding(table="principals.ClaimedSession", paths=("session__cluster_user__user", "claim__agent__owner"),
            purpose="which sessions those were", kept="with the session"),
    Holding(table="principals.AgentHandover", paths=("giver", "taker", "asked_by"), on_erase=OnErase.KEEP,
            purpose="agents that passed from one person to another", kept="with the agent"),
    Holding(table="principals.RenewalReminder", paths=("agent__owner",), purpose="that an agent’s end was announced",
            kept="with the agent"),
    Holding(table="policies.AupAcceptance", paths=("user", "owner", "agent__owner"), on_erase=OnErase.KEEP,
            purpose="proof of who accepted which acceptable use", kept="until the site deletes it"),
    Holding(table="policies.AupPersonAcceptance", paths=("user",), on_erase=OnErase.KEEP,
            purpose="proof of who accepted which acceptable use for themselves", kept="until the site deletes it"),
    Holding(table="policies.AupDraft", paths=("written_by",), on_erase=OnErase.KEEP,
            purpose="drafts of the policy that you wrote", kept="until published or dropped"),
    # --- holds, rights, notices --------------------------------------------------------------------------
    Holding(table="principals.Hold", find=_holds, on_erase=OnErase.KEEP, kept="until the site deletes it",
            purpose="why you or an agent of yours was stopped, and what you stopped", own=_holds_on,
            blank={"reason": "Erased.", "remedy": ""}),
    Holding(table="principals.KillSwitch", find=_kill_switches, on_erase=OnErase.KEEP,
            purpose="kill switches on you, or that you asked for or decided", kept="until the site deletes it"),
    Holding(table="principals.Appeal", paths=("person", "answered_by"), purpose="what you appealed, or answered",
            kept="until the site deletes it", on_erase=OnErase.KEEP, own=lambda person: Q(person=person),
            blank={"reason": "Erased.", "about": "Erased"}),
    Holding(table="principals.DataAccess", paths=("person", "by"), on_erase=OnErase.KEEP,
            purpose="who opened what is held about you and why, and what you opened", kept="until the site deletes it"),
    Holding(table="principals.Notice", paths=("person",), purpose="what you were told", kept="180 days"),
    Holding(table="principals.NoticeMail", paths=("person",), purpose="mails that told it", kept="180 days"),
    Holding(table="principals.NoticePreference", paths=("person",), purpose="how you are told", kept=_WHILE),
    Holding(table="webhooks.Webhook", paths=("owner",), purpose="addresses that you have events sent to",
            kept="until you delete it", hidden=("generation", "pepper", "old_pepper")),
    Holding(table="webhooks.Delivery", paths=("webhook__owner",), purpose="what was sent there", kept="7 days"),
    # --- jobs and what was used --------------------------------------------------------------------------
    Holding(table="telemetry.Job", find=_work, on_erase=OnErase.KEEP,
            purpose="your jobs, as Slurm accounts for them, and whose work they are taken to be", kept=_ACCOUNTING,
            own=lambda person: Q(cluster_user__user=person),
            blank={"job_name": "", "submit_line": "", "work_dir": "", "campaign": "", "extra": {}},
            hidden=("digest",)),
    Holding(table="telemetry.JobGpu", paths=("job__cluster_user__user",), on_erase=OnErase.KEEP,
            purpose="use of GPUs of your jobs", kept="with the job"),
    Holding(table="telemetry.JobGpuUse", paths=("job__cluster_user__user",), on_erase=OnErase.KEEP,
            purpose="the same, by job", kept="with the job"),
    Holding(table="telemetry.JobReceipt", paths=("agent__owner",), purpose="receipts that tie jobs to your agents",
            kept="until the site deletes it", on_erase=OnErase.KEEP),
    Holding(table="telemetry.JobOutput", find=_outputs, purpose="where jobs of yours write, as the queue says",
            kept="while Slurm’s queue holds the job, and a while after"),
    Holding(table="telemetry.RollupDay", paths=("cluster_user__user",), on_erase=OnErase.KEEP,
            purpose="sums of your jobs by day", kept=_ACCOUNTING),
    Holding(table="telemetry.RollupUser", paths=("cluster_user__user",), on_erase=OnErase.KEEP,
            purpose="the same, by user", kept=_ACCOUNTING),
    Holding(table="telemetry.RollupDirty", paths=("cluster_user__user",), on_erase=OnErase.KEEP,
            purpose="sums of yours to be added up anew", kept="minutes"),
    Holding(table="telemetry.PendingAttribution", paths=("cluster_user__user",), on_erase=OnErase.KEEP,
            purpose="jobs of yours to be attributed anew", kept="minutes"),
    Holding(table="telemetry.QueueSheet", paths=("cluster_user__user",), purpose="what squeue prints of your jobs",
            kept="while Slurm’s queue holds the job"),
    Holding(table="policies.TrialGrant", paths=("user", "agent__owner"), on_erase=OnErase.KEEP,
            purpose="trials of your agents", kept="until the site deletes it", blank={"purpose": ""}),
    Holding(table="policies.TrialRefusal", paths=("user", "agent__owner"), purpose="trials that were refused",
            kept="90 days"),
    # --- what agents did on nodes ------------------------------------------------------------------------
    Holding(table="telemetry.ActivityMinute", paths=("session__cluster_user__user",), kept="30 days",
            purpose="counts of kinds of commands of such sessions, by minute"),
    Holding(table="telemetry.ActivityDay", paths=("cluster_user__user",), kept="3 years",
            purpose="the same, by day"),
    Holding(table="telemetry.ActivityDirty", find=_logins, purpose="days of yours to be added up anew",
            kept="minutes"),
    Holding(table="telemetry.ActivitySubmission", paths=("session__cluster_user__user",), kept="400 days",
            purpose="when such a session submitted a job"),
    Holding(table="telemetry.PollingLoop", paths=("session__cluster_user__user",), kept="400 days",
            purpose="when it asked the scheduler the same again and again"),
    Holding(table="telemetry.ExperimentLoop", paths=("session__cluster_user__user",), kept="400 days",
            purpose="when it submitted, looked and submitted again"),
    Holding(table="telemetry.GatewayMinute", paths=("cluster_user__user",), kept="30 days",
            purpose="requests of agents at gateways, by second"),
    Holding(table="telemetry.GatewayDay", paths=("cluster_user__user",), kept="3 years",
            purpose="the same, by day"),
    Holding(table="telemetry.SchedulerCalls", paths=("cluster_user__user",), kept="until the site deletes it",
            purpose="what your login name asks of the scheduler, by day"),
    Holding(table="telemetry.HarnessChoice", paths=("user",), purpose="whether your harness may tell of itself",
            kept="until you change it"),
    Holding(table="telemetry.HarnessReading", paths=("agent__owner",), purpose="what it told, by minute",
            kept="30 days, or until you decline", hidden=("session_key",)),
    Holding(table="telemetry.HarnessDay", paths=("agent__owner",), purpose="the same, by day",
            kept="3 years, or until you decline", hidden=("session_key",)),
    # --- security ----------------------------------------------------------------------------------------
    Holding(table="security.Incident", paths=("cluster_user__user", "agent__owner", "assignee"),
            on_erase=OnErase.KEEP, purpose="incidents that concern you, or that you work on",
            kept="until the site deletes it", hidden=("fingerprint", "dedup_key")),
    Holding(table="security.IncidentEvent", on_erase=OnErase.KEEP, kept="with the incident",
            find=lambda person: (Q(incident__cluster_user__user=person) | Q(incident__agent__owner=person))
            & ~Q(kind="note"),
            purpose="what happened in such an incident; notes of those who work on it are theirs"),
    Holding(table="security.Finding", paths=("cluster_user__user", "agent__owner"), on_erase=OnErase.KEEP,
            purpose="what a detector saw, redacted, and how it knows whose it is", kept="with the incident",
            blank={"evidence": "", "place": "", "masks": []}, hidden=("fingerprint", "dedup_key", "key")),
    # --- lessons, extensions, work of the portal -----------------------------------------------------------
    Holding(table="memory.Lesson", paths=("owner", "author_user", "author_agent__owner", "decided_by"),
            on_erase=OnErase.KEEP, purpose="lessons of you and your agents, which a lab works with",
            kept="until withdrawn and deleted by the site", hidden=("content_digest",)),
    Holding(table="memory.LessonEvidence", paths=("user", "agent__owner"), on_erase=OnErase.KEEP,
            purpose="your word, or your agent’s, that a lesson holds", kept="with the lesson"),
    Holding(table="policies.ExtensionRelease", paths=("submitted_by", "decided_by"), on_erase=OnErase.KEEP,
            purpose="extensions that you submitted or decided on", kept="until the site deletes it"),
    Holding(table="reports.Drafting", paths=("asked_by",), purpose="reports that you asked for", kept="minutes"),
    Holding(table="telemetry.IngestBatch", find=_batches, on_erase=OnErase.KEEP,
            purpose="files of accounting that you sent", kept="until the site deletes it"),
    Holding(table="core.AuditEvent", find=_audit, on_erase=OnErase.KEEP, hidden=("salt",),
            purpose="who did what to whom: your acts, your agents’, and those on you",
            kept="until the site deletes it; its chain proves that nothing was changed"),
    Holding(table="core.LiveEvent", find=_live, on_erase=OnErase.STAY, purpose="news for your pages and webhooks",
            kept="7 days"),
    Holding(table="core.LiveEventTopic", find=_live_topics, on_erase=OnErase.STAY, purpose="whom that news is for",
            kept="7 days"),
)  # fmt: skip

BY_SLUG: Final[dict[str, Holding]] = {holding.slug: holding for holding in INVENTORY}
