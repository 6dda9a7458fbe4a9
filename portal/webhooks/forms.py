"""Forms of the webhooks' pages."""

from typing import Any

from django import forms

from portal.dashboard.agents.forms import NamesField, WordsField
from portal.webhooks.hosts import MAX_ADDRESS
from portal.webhooks.models import Webhook
from portal.webhooks.services import Wish


class WebhookForm(forms.Form):
    """What a webhook is to be. Whether it may be is the service's to judge."""

    name = WordsField(max_length=60, help_text="So that you know it again.")
    address = forms.CharField(
        max_length=MAX_ADDRESS,
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off", "spellcheck": "false"}),
        help_text="Where its receiver listens, as https://host/path. Put no secret into it: it is stored and shown.",
    )
    topics = forms.MultipleChoiceField(
        label="What it hears", required=False, widget=forms.CheckboxSelectMultiple,
        help_text="The same that you hear on your own pages. Leave out what its receiver does not need.",
    )  # fmt: skip
    others = NamesField(
        label="Other topics", required=False, max_length=2000,
        help_text="As kind:key, with commas between them: job:aster:1234 for one job.",
    )  # fmt: skip

    def __init__(self, *args: Any, offered: list[tuple[str, str]], allowed: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if allowed:
            self.fields["address"].help_text += f" The site allows: {allowed}."
        self.fields["topics"].choices = offered  # type: ignore[attr-defined]

    def wish(self) -> Wish:
        """Return what was typed, as the service takes it."""
        data = self.cleaned_data
        return Wish(data["name"], data["address"], [*data["topics"], *data["others"]])


def initial_of(webhook: Webhook, offered: list[tuple[str, str]]) -> dict[str, Any]:
    """Return a webhook as the form shows it."""
    known = {topic for topic, _ in offered}
    return {
        "name": webhook.name,
        "address": webhook.address,
        "topics": [topic for topic in webhook.topics if topic in known],
        "others": [topic for topic in webhook.topics if topic not in known],
    }
