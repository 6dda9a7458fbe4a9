"""Tables in which no row is about a person as such, each with the reason. A test reads it."""

from typing import Final

_SITE: Final = "describes the facility"
_SUMS: Final = "sums of many, without a person"
_WORK: Final = "the portal’s own work"

NOT_KEYED: Final[dict[str, str]] = {
    "auth.Permission": "names of rights",
    "auth.Group": "names of groups",
    "auth.Group_permissions": "rights of groups",
    "contenttypes.ContentType": "names of tables",
    "sessions.Session": "a browser’s sign-in, sealed, for 12 hours; an erasure ends it by switching the account off",
    "guardian.GroupObjectPermission": "rights of groups",
    "socialaccount.SocialApp": "the provider that people sign in with",
    "core.Counter": _WORK,
    "core.Lease": _WORK,
    "core.IdempotencyKey": "the first answer to a token’s call, for a day; tokens’ names are keys, not people",
    "principals.Cluster": _SITE,
    "principals.SlurmAccount": _SITE,
    "principals.ServiceAccount": "site automation",
    "telemetry.SshDay": "numbers of connections of a node, without whose",
    "telemetry.BaselineStudy": "a study: its name, approval and days; whom it observes stands in sessions",
    "telemetry.CollectorReport": "how a collector did on a node",
    "telemetry.ArrayTold": "how many tasks of an array are in which state, by its number, for 7 days",
    "telemetry.HookReport": "states of jobs by number, for 7 days",
    "telemetry.IngestPayload": "a posted file while it is read, 7 days where that failed: not opened for one person",
    "telemetry.QuarantinedRow": "records that could not be read, redacted, for 30 days: whose they are is not known",
    "telemetry.IngestSource": _SITE,
    "telemetry.IngestGap": _SITE,
    "telemetry.SlurmReader": _WORK,
    "telemetry.RollupGpu": _SUMS,
    "telemetry.RollupGpuDirty": _WORK,
    "telemetry.RollupHistogram": _SUMS,
    "telemetry.RollupHour": _SUMS,
    "telemetry.DataGeneration": _WORK,
    "telemetry.ShimUse": _SUMS,
    "telemetry.Node": _SITE,
    "telemetry.Partition": _SITE,
    "telemetry.Qos": _SITE,
    "telemetry.InventoryReading": _WORK,
    "policies.AupVersion": "the text of the policy; who published it is a label",
    "policies.Extension": "a program that agents may use",
    "policies.TrialPolicy": "limits of labs; who changed them is a label",
    "memory.LessonLookup": "that somebody looked, without who",
    "memory.LessonToken": "words of a lesson, which is listed itself",
    "reports.Report": "published sums; who approved them is a label",
}

# Columns of text in which a login name may stand as a label. An erasure puts the pseudonym there.
LABELS: Final[tuple[tuple[str, str], ...]] = (
    ("principals.Hold", "placed_by"),
    ("principals.Hold", "lifted_by"),
    ("principals.AgentToken", "revoked_by"),
    ("principals.ServiceToken", "revoked_by"),
    ("principals.DataAccess", "by_label"),
    ("telemetry.BaselineStudy", "approved_by"),
    ("telemetry.IngestBatch", "sent_by"),
    ("policies.AupVersion", "published_by"),
    ("policies.TrialPolicy", "changed_by"),
    ("memory.Lesson", "author_label"),
    ("memory.LessonEvidence", "actor_label"),
    ("security.IncidentEvent", "actor_label"),
    ("security.Finding", "source"),
    ("reports.Report", "built_by"),
    ("reports.Report", "approved_by"),
    ("reports.Report", "published_by"),
)
