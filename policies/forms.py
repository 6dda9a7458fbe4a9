"""Forms of `policies`."""

from typing import Any

from django import forms

from policies.engine.extensions import CAPABILITIES, IDENTITY_MAX
from policies.models import Extension, ExtensionRelease, TrialPolicy
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
