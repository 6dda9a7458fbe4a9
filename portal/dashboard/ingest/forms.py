"""Forms of the ingest pages."""

from django import forms

from telemetry.models import IngestSource
from telemetry.services.sources import LONGEST_EXPECTED_S


class SourceChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A source by what it is called on the page."""

    def label_from_instance(self, obj: IngestSource) -> str:
        return f"{obj.name}: {obj.kind} of {obj.cluster.name}"


class ExpectForm(forms.Form):
    """How often a source is expected."""

    source = SourceChoice(
        queryset=IngestSource.objects.select_related("cluster").order_by("cluster__name", "kind", "name"),
        empty_label=None,
    )
    every_s = forms.IntegerField(
        label="Expected every, in seconds", required=False, min_value=1, max_value=LONGEST_EXPECTED_S,
        help_text="Late after two of them, down after ten. Empty: it comes when it comes and is never late.",
    )  # fmt: skip
