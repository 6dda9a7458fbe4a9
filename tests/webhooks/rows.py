"""Rows of webhooks as they can be without a site that allows hosts."""

from portal.webhooks.models import Webhook
from principals.models import User
from principals.services.tokens.issuing import peppers


def make_webhook(owner: User, name: str = "ops") -> Webhook:
    given = {"address": "https://hooks.example.org/in", "topics": [f"user:{owner.pk}"], "cursor": 0}
    return Webhook.objects.get_or_create(owner=owner, name=name, defaults=given | {"pepper": max(peppers())})[0]
