"""Forms of the lessons' pages."""

from typing import Any

from django import forms

from memory.models.choices import Scope
from memory.services.content import LIMITS, MAX_REASON, LessonContent, sources_for
from principals.actors import Actor
from principals.models import Cluster, Lab
from principals.permissions import can


def _text(label: str, rows: int, **kwargs: Any) -> forms.CharField:
    return forms.CharField(
        label=label, widget=forms.Textarea(attrs={"rows": rows, "class": "ctl"}), strip=False, **kwargs
    )


class RecordForm(forms.Form):
    """A lesson as a person writes it down. Lengths are the service's to judge; it says what to do."""

    error_text = _text(
        "Error", 5, max_length=LIMITS["error_text"],
        help_text="As it was printed; the lines that say what failed. Secrets are taken out before it is stored.",
    )  # fmt: skip
    cause = _text("Cause", 3, max_length=LIMITS["cause"], help_text="Why it failed, in a sentence or two.")
    fix = _text("Fix", 3, max_length=LIMITS["fix"], help_text="What made it work.")
    check_words = _text(
        "How to tell it from other causes", 2, max_length=LIMITS["check_words"], required=False,
        help_text="One look that changes nothing and shows that it is this cause. The same error often has several.",
    )  # fmt: skip
    conditions = _text(
        "Holds where",
        2,
        max_length=2000,
        required=False,
        help_text="One a line, as gpu_arch == sm_120. Empty: anywhere.",
    )
    job_key = forms.CharField(
        label="Job", max_length=80, required=False, help_text="The job it was learnt from, as cluster:job id."
    )
    source = forms.ChoiceField(label="How you know", help_text="What a reader may make of it.")
    place = forms.ChoiceField(label="For whom", help_text="Beyond your project, people’s names are taken out.")

    def __init__(self, actor: Actor, labs: list[Lab], clusters: list[Cluster], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.labs, self.clusters = {lab.name: lab for lab in labs}, {each.name: each for each in clusters}
        self.fields["source"].choices = sources_for(actor)  # type: ignore[attr-defined]
        places = [("project:", "My project")] if not labs else []
        for lab in labs:
            waits = "" if lab.pk in actor.managed_lab_ids else ", once its PI approves"
            places += [
                (f"project:{lab.name}", f"My project in {lab.title}"),
                (f"lab:{lab.name}", f"{lab.title}{waits}"),
            ]
        if can(actor, "facility.run"):
            places += [(f"cluster:{each.name}", f"Everybody on {each.name}") for each in clusters]
        self.fields["place"].choices = places  # type: ignore[attr-defined]

    def content(self) -> LessonContent:
        """Return what was typed, for the service."""
        said = self.cleaned_data
        texts = {name: said[name] for name in (*LIMITS, "source", "job_key")}
        return LessonContent(**texts, conditions=tuple(said["conditions"].splitlines()))

    def where(self) -> dict[str, Any]:
        """Return the scope and what it names, for the service."""
        scope, _, name = self.cleaned_data["place"].partition(":")
        if scope == Scope.CLUSTER:
            return {"scope": scope, "cluster": self.clusters[name]}
        return {"scope": scope, "lab": self.labs.get(name)}


class ReviewForm(forms.Form):
    """A proposal's texts as its reviewer wants them. The error is not theirs to word."""

    cause = _text("Cause", 3, max_length=LIMITS["cause"])
    fix = _text("Fix", 3, max_length=LIMITS["fix"])
    check_words = _text("How to tell it from other causes", 2, max_length=LIMITS["check_words"], required=False)


class ReasonForm(forms.Form):
    """Why a lesson is turned down or withdrawn."""

    reason = forms.CharField(
        label="Reason", max_length=MAX_REASON, error_messages={"required": "Say why. A sentence is enough."},
        widget=forms.Textarea(attrs={"rows": 2, "class": "ctl"}),
    )  # fmt: skip
