"""Forms of `policies`."""

from dataclasses import replace
from typing import Any

from django import forms

from policies.engine.aup import LONGEST_GRACE_DAYS, LONGEST_TEXT, VERSION_LENGTH, Aup, write_aup
from policies.engine.clause_toml import write_clauses
from policies.engine.extensions import CAPABILITIES, IDENTITY_MAX
from policies.engine.packs import PACKS
from policies.models import AupDraft, Extension, ExtensionRelease, TrialPolicy
from policies.services.aup_drafts import NEWEST
from policies.services.trial_limits import LIMITS


class TrialLimitsForm(forms.ModelForm):  # type: ignore[type-arg]
    """The limits of trials, of the facility or of a lab."""

    class Meta:
        model = TrialPolicy
        fields = LIMITS
        labels = {
            "max_minutes": "Longest, in minutes",
            "max_gpus": "GPUs, at most",
            "max_nodes": "Nodes, at most",
            "person_trials": "Trials a person a day",
            "person_gpu_minutes": "GPU-minutes a person a day",
            "lab_trials": "Trials a lab a day",
            "lab_gpu_minutes": "GPU-minutes a lab a day",
            "valid_minutes": "A receipt waits for its job, in minutes",
            "qos": "QoS",
            "partition": "Partition",
        }
        help_texts = {
            "max_minutes": "Walltime of one trial; it is charged in full.",
            "max_gpus": "Of one trial, all nodes together.",
            "max_nodes": "Of one trial.",
            "person_gpu_minutes": "Each trial is charged its minutes times its GPUs.",
            "lab_gpu_minutes": "What a person may use lies inside it.",
            "person_trials": "Shared by all agents of a person in the lab.",
            "lab_trials": "Of everybody in the lab together.",
            "valid_minutes": "After that it expires; what it was charged comes back a day after it was granted.",
            "qos": "How jobs of trials are told from others. Slurm’s own limits on it are the backstop.",
            "partition": "Empty: the cluster’s default.",
        }


class SubmitForm(forms.Form):
    """An extension submitted for review."""

    kind = forms.ChoiceField(choices=Extension.Kind.choices)
    identity = forms.CharField(
        max_length=IDENTITY_MAX, help_text="As its registry names it: lower case, parts joined by /. No @ and no tag."
    )
    version = forms.CharField(max_length=80, help_text="One release, such as 1.4.2; a moving name cannot be reviewed.")
    digest = forms.CharField(
        label="Content digest", max_length=80, help_text="sha256: and 64 digits, of the files as they are loaded."
    )
    capabilities = forms.MultipleChoiceField(
        label="It may", required=False, widget=forms.CheckboxSelectMultiple,
        choices=[(each.name, each.words) for each in CAPABILITIES.values()],
        help_text="What it declares is reviewed; what it does beyond that is a finding.",
    )  # fmt: skip
    source_url = forms.CharField(
        label="Source",
        max_length=500,
        required=False,
        help_text="Where a reviewer finds the code: https://…, git+ssh://…, oci://…, npm:… or pypi:….",
    )
    description = forms.CharField(
        label="What it is for", max_length=4000, required=False, widget=forms.Textarea(attrs={"rows": 4})
    )


class DecideForm(forms.Form):
    """A decision about a release; which words it needs the service says."""

    reason = forms.CharField(
        max_length=1000, required=False, widget=forms.Textarea(attrs={"rows": 3}),
        help_text="The submitter reads it. Needed for all but a plain admission.",
    )  # fmt: skip
    conditions = forms.CharField(
        max_length=1000, required=False, widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Only for an admission with conditions; harnesses read them with the list.",
    )  # fmt: skip

    def __init__(self, *args: Any, release: ExtensionRelease, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if release.state != ExtensionRelease.State.QUEUED:
            del self.fields["conditions"]
            self.fields["reason"].required = True
            self.fields["reason"].help_text = "The submitter reads it."


class StartDraftForm(forms.Form):
    """What a new version of the policy starts from."""

    pack = forms.ChoiceField(
        label="Start from", help_text="Its text and clauses; you change all of it before it counts."
    )

    def __init__(self, *args: Any, newest: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        packs = [(name, f"{name}: {words}") for name, words in PACKS.items()]
        self.fields["pack"].choices = [(NEWEST, f"The version published last, {newest}"), *packs]  # type: ignore[attr-defined]


class DraftForm(forms.Form):
    """A draft of the policy: its head and its Markdown in fields, its clauses as TOML."""

    version = forms.CharField(max_length=VERSION_LENGTH, help_text="A name of its own, such as 2027-01.")
    title = forms.CharField(max_length=120, help_text="It heads the page of the policy.")
    effective = forms.DateField(
        label="In force from", widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text="The beginning of that day, UTC.",
    )  # fmt: skip
    grace_days = forms.IntegerField(
        label="Grace, in days", min_value=0, max_value=LONGEST_GRACE_DAYS,
        help_text="From then on, or from publication where that is later; after it agents without it are held.",
    )  # fmt: skip
    text = forms.CharField(
        label="Text for people, in Markdown", required=False, max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 10}), help_text="HTML and pictures are shown as text.",
    )  # fmt: skip
    clauses = forms.CharField(
        label="Clauses, in TOML", max_length=200_000, strip=False,
        widget=forms.Textarea(attrs={"rows": 24, "class": "mono", "spellcheck": "false"}),
        help_text="One [[clause]] each. What nobody checks is shown as unverified, whatever it says.",
    )  # fmt: skip

    @classmethod
    def of(cls, draft: AupDraft) -> "DraftForm":
        """Fill the form with a draft; its clauses stay as they were typed, for TOML has comments."""
        aup = draft.policy
        head = {name: getattr(aup, name) for name in ("version", "title", "grace_days", "text")}
        before = write_aup(replace(aup, clauses=()))
        typed = draft.source.removeprefix(before) if draft.source.startswith(before) else write_clauses(aup.clauses)
        return cls(initial=head | {"effective": aup.effective_day, "clauses": typed})

    def source(self) -> str:
        """Return what was typed as the TOML of a policy, with the clauses as they were typed."""
        data = self.cleaned_data
        text = data["text"].replace("\r\n", "\n")
        head = Aup(data["version"], data["title"], data["effective"].isoformat(), (), text, data["grace_days"])
        clauses: str = data["clauses"].replace("\r\n", "\n")
        return write_aup(head) + clauses
