"""Forms of an incident's page."""

from django import forms

from security.services.incidents import MAX_NOTE, MAX_REASON


class ReasonForm(forms.Form):
    """Why something is done; kept in the timeline and the audit trail."""

    reason = forms.CharField(
        label="Reason", max_length=MAX_REASON, error_messages={"required": "Say why. A sentence is enough."},
        widget=forms.Textarea(attrs={"rows": 2, "class": "ctl"}),
    )  # fmt: skip


class NoteForm(forms.Form):
    """A note for those who work on incidents."""

    text = forms.CharField(
        label="Add a note", max_length=MAX_NOTE, error_messages={"required": "The note is empty."},
        help_text="What you found or decided. Read by InfoSec, staff and auditors only.",
        widget=forms.Textarea(attrs={"rows": 3, "class": "ctl"}),
    )  # fmt: skip
