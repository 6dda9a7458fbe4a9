"""A site that lets webhooks go to this host, a person with one, and a way to tell them news."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.db import transaction

from portal.core import live
from portal.webhooks import courier, hosts, services
from portal.webhooks.models import Webhook
from principals.models import User
from tests import factories
from tests.conftest import Cast
from tests.webhooks.receivers import Receiver, receiving


@pytest.fixture
def receiver(settings) -> Iterator[Receiver]:
    """A receiver that takes all, at the one place the site allows."""
    with receiving() as running:
        settings.WEBHOOK_HOSTS = hosts.read_allowed([f"http://127.0.0.1:{running.port}"])
        yield running


@dataclass
class Registered:
    """Somebody's webhook, with its key."""

    row: Webhook
    key: str
    owner: User

    @property
    def now(self) -> Webhook:
        return Webhook.objects.select_related("owner").get(pk=self.row.pk)

    def tell(self, *names: str) -> list[int]:
        """Tell its owner news; return their positions."""
        tell(*names, topics=(f"user:{self.owner.pk}",))
        return [row.seq or 0 for row in live.after(live.newest_seq() - len(names), limit=len(names))]


def tell(*names: str, topics: tuple[str, ...]) -> None:
    with transaction.atomic():
        live.announce(live.News(name=name, topics=topics, payload={"name": name}) for name in names)
    live.number_committed()


def register(owner: User, address: str, *topics: str, name: str = "ops") -> Registered:
    wish = services.Wish(name, address, list(topics) or [f"user:{owner.pk}"])
    made = services.register_webhook(actor=factories.actor_of(owner), wish=wish)
    return Registered(made.webhook, made.key, owner)


@pytest.fixture
def webhook(cast: Cast, receiver: Receiver) -> Registered:
    """The PI's webhook for their own news."""
    return register(cast.pi, receiver.address)


def deliver() -> int:
    """Let the courier work until nothing is due."""
    return courier.deliver()
