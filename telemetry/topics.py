"""Topics that jobs are told on, and who may listen. Their events carry login names, so agents hear their owner's only.

`job:<cluster>:<raw id>`, `array:<cluster>:<array's number>`, `user-jobs:<ClusterUser id>`, `lab-jobs:<lab id>`,
`all-jobs:<cluster>`, and `campaign:<ClusterUser id>:<label>`, for a label is one person's word.
"""

from portal.core.topics import TopicKind, register
from principals.actors import Actor
from principals.models import Cluster, ClusterUser, Lab
from telemetry.engine.slurm.records import is_label
from telemetry.models import Job

_MAX_ID = 2**63 - 1


def _id_of(key: str) -> int | None:
    number = int(key) if key.isascii() and key.isdigit() and len(key) <= 19 else None
    return number if number is not None and number <= _MAX_ID else None


def _may_hear_job(actor: Actor, key: str) -> bool:
    """Who may see every record of that job id; an agent must own them, whatever its grants."""
    cluster, _, raw = key.rpartition(":")
    raw_id = _id_of(raw)
    if raw_id is None:
        return False
    records = Job.objects.filter(cluster__name=cluster, raw_id=raw_id)
    visible = records.visible_to(actor)
    if actor.agent is not None:
        visible = visible.filter(cluster_user__user=actor.user)
    # An id that recycled may belong to two people: seeing the newest is what counts.
    newest = records.order_by("-submit").values_list("pk", flat=True).first()
    return newest is not None and visible.filter(pk=newest).exists()


def _may_hear_user(actor: Actor, key: str) -> bool:
    user_id = _id_of(key)
    return user_id is not None and ClusterUser.objects.visible_to(actor).filter(pk=user_id).exists()


def _may_hear_campaign(actor: Actor, key: str) -> bool:
    user_id, _, label = key.partition(":")
    return is_label(label) and _may_hear_user(actor, user_id)


def _may_hear_lab(actor: Actor, key: str) -> bool:
    lab_id = _id_of(key)
    if lab_id is None or actor.agent is not None:
        return False
    if actor.sees_facility:
        return Lab.objects.filter(pk=lab_id).exists()
    return lab_id in actor.visible_lab_ids


def _may_hear_all(actor: Actor, key: str) -> bool:
    return actor.sees_facility and Cluster.objects.filter(name=key).exists()


def _own_users(actor: Actor) -> list[str]:
    if actor.user is None:
        return []
    ids = ClusterUser.objects.filter(user=actor.user).order_by("pk").values_list("pk", flat=True)
    return [f"user-jobs:{pk}" for pk in ids]


def _own_labs(actor: Actor) -> list[str]:
    return [] if actor.agent is not None else [f"lab-jobs:{pk}" for pk in sorted(actor.visible_lab_ids)]


def _all_clusters(actor: Actor) -> list[str]:
    if not actor.sees_facility:
        return []
    return [f"all-jobs:{name}" for name in Cluster.objects.order_by("name").values_list("name", flat=True)]


def register_topics() -> None:
    """Register the kinds of this app; called once, when it starts."""
    register(TopicKind("job", "Changes of one job", _may_hear_job))
    register(TopicKind("array", "Tasks of one array by state, at each change", _may_hear_job))
    register(TopicKind("campaign", "Changes of the jobs of one login name with one campaign label", _may_hear_campaign))
    register(TopicKind("user-jobs", "Changes of the jobs of one login name", _may_hear_user, _own_users))
    register(TopicKind("lab-jobs", "Changes of a lab's jobs", _may_hear_lab, _own_labs))
    register(TopicKind("all-jobs", "Changes of every job of a cluster", _may_hear_all, _all_clusters))
