"""What a person may choose from, what they see of their webhooks, and what operators measure."""

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from django.db.models import Count, Q, QuerySet
from prometheus_client.core import GaugeMetricFamily

from portal.core import clock
from portal.core import topics as kernel_topics
from portal.webhooks.models import Delivery, Webhook, WebhookQuerySet
from principals.actors import Actor
from principals.models import Agent, ClusterUser, Lab

MOST_OFFERED: Final = 60
SHOWN: Final = 20
_AGE: Final = timedelta(days=1)
_ASIDE: Final = re.compile(r" \(key: [^)]*\)| Agents do not hear it\.")  # of no use to whoever chooses for themselves


def of_person(actor: Actor) -> WebhookQuerySet:
    """Return a person's webhooks, with how many dead letters each has and what came of the last day."""
    day = Q(deliveries__ended__gte=clock.now() - _AGE, deliveries__state=Delivery.State.DELIVERED)
    found = Webhook.objects.visible_to(actor)
    return found.annotate(
        dead=Count("deliveries", filter=Q(deliveries__state=Delivery.State.DEAD)),
        waiting=Count("deliveries", filter=Q(deliveries__state=Delivery.State.OPEN)),
        delivered=Count("deliveries", filter=day),
    )


def latest(webhook: Webhook) -> QuerySet[Delivery]:
    """Return the newest deliveries of a webhook but dead letters."""
    return webhook.deliveries.exclude(state=Delivery.State.DEAD)[:SHOWN]


def dead_letters(webhook: Webhook) -> QuerySet[Delivery]:
    """Return what was tried in vain and waits for a decision, oldest first."""
    return webhook.deliveries.filter(state=Delivery.State.DEAD).order_by("pk")[: SHOWN * 5]


def offered_topics(actor: Actor) -> list[tuple[str, str]]:
    """Return the topics that a person hears by default, each with words: whom it is about, and what it tells."""
    topics = kernel_topics.default_topics(actor)[:MOST_OFFERED]
    kinds = {kind.name: kind.describe for kind in kernel_topics.kinds()}
    names = _names_of(topics) | {f"{kind}:{actor.ref.id}": "You" for kind in ("user", "user-incidents")}
    return [(topic, _words(topic, kinds, names)) for topic in topics]


def _words(topic: str, kinds: dict[str, str], names: dict[str, str]) -> str:
    kind = topic.partition(":")[0]
    told = _ASIDE.sub("", kinds[kind]).strip(" .")
    return f"{names[topic]}: {told[:1].lower()}{told[1:]}\n{topic}" if topic in names else f"{told}\n{topic}"


def _names_of(topics: Sequence[str]) -> dict[str, str]:
    """Return topic → name, for those whose key is the id of a lab, an agent or a login name."""
    keys: dict[str, set[int]] = {}
    for kind, _, key in (topic.partition(":") for topic in topics):
        if key.isdecimal():
            keys.setdefault(kind, set()).add(int(key))
    labs = dict(Lab.objects.filter(pk__in=_of(keys, "lab", "lab-jobs", "lab-incidents")).values_list("pk", "title"))
    agents = dict(Agent.objects.filter(pk__in=_of(keys, "agent")).values_list("pk", "name"))
    logins = ClusterUser.objects.filter(pk__in=_of(keys, "user-jobs")).select_related("cluster")
    users = {user.pk: f"{user.login} on {user.cluster.name}" for user in logins}
    known = {"lab": labs, "lab-jobs": labs, "lab-incidents": labs, "agent": agents, "user-jobs": users}
    return {
        f"{kind}:{pk}": name for kind, rows in known.items() for pk, name in rows.items() if pk in keys.get(kind, ())
    }


def _of(keys: dict[str, set[int]], *kinds: str) -> set[int]:
    return set().union(*(keys.get(kind, set()) for kind in kinds))


def metrics() -> Iterable[GaugeMetricFamily]:
    """Give `/metrics` the number of webhooks and of deliveries by state."""
    for name, words, model in (
        ("gatehouse_webhooks", "Webhooks by state", Webhook),
        ("gatehouse_webhook_deliveries", "Deliveries of webhooks that are kept, by state", Delivery),
    ):
        family = GaugeMetricFamily(name, words, labels=["state"])
        counts = dict(model.objects.order_by().values_list("state").annotate(Count("pk")))
        for state in model.State.values:
            family.add_metric([state], counts.get(state, 0))
        yield family
