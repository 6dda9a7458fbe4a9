"""Forms about agents."""

import re
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest

from policies.models import AupVersion
from portal.core import clock
from portal.core.errors import Invalid
from portal.dashboard.components.words import facility_zone
from portal.dashboard.formats import counted
from principals import services as principal_services
from principals.engine import hours
from principals.engine.harnesses import known_harnesses
from principals.models import Agent, Association, Lab, User
from principals.services.agents import RENEWED_FOR, VERSION_LENGTH, Registration
from security.services.cleaning import clean_text

_NAMES = re.compile(r"[\s,]+")
DEFAULT_LIFE = RENEWED_FOR


def end_of_day(day: date) -> datetime:
    """Return the last minute of a day in the facility's zone."""
    return datetime.combine(day, time(23, 59), tzinfo=facility_zone())


class NamesField(forms.CharField):
    """Names with commas or spaces between them; gives a list."""

    def to_python(self, value: Any) -> Any:
        return [name for name in _NAMES.split(super().to_python(value) or "") if name]

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value


class WordsField(forms.CharField):
    """Words of a person, kept for others to read: secrets in them are taken out first."""

    def to_python(self, value: Any) -> Any:
        return clean_text(super().to_python(value) or "")


class RegisterForm(forms.Form):
    """Registering an agent, the acceptance of the AUP included."""

    name = forms.CharField(max_length=60, help_text="Appears next to its jobs. Lower-case letters, digits and dashes.")
    harness = forms.ChoiceField(
        help_text="The program that runs the model. We check it against what the login node sees."
    )
    harness_version = WordsField(
        label="Its version", required=False, max_length=VERSION_LENGTH, help_text="As it says of itself, such as 2.1."
    )
    purpose = WordsField(
        label="What it is for",
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One or two sentences. Staff and InfoSec read this first when something looks odd.",
    )
    autonomy = forms.ChoiceField(
        label="How much it does alone",
        widget=forms.RadioSelect,
        initial=Agent.Autonomy.SUPERVISED,
        choices=[
            ("supervised", "Supervised\nSomeone in the lab is at the keyboard and sees each step."),
            ("unattended", "Unattended\nIt submits, waits and resubmits with nobody watching."),
        ],
        help_text="This weighs most in its risk tier.",
    )
    owner = forms.ModelChoiceField(
        User.objects.none(),
        label="Who answers for it",
        empty_label="Choose somebody of the lab",
        help_text="Gets its warnings. The agent can never do more than this person.",
        to_field_name="username",
    )
    expires = forms.DateField(
        label="Registration ends",
        help_text="At most a year. We write 30, 7 and 1 days before: under Notices, and by mail where the site has it.",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    accounts = forms.MultipleChoiceField(
        label="Slurm accounts", required=False, widget=forms.CheckboxSelectMultiple,
        help_text="Those that Slurm lets who answers for it charge. None ticked: any of them.",
    )  # fmt: skip
    hosts = NamesField(
        label="Login nodes", required=False, help_text="Its sessions are matched on these only. Empty: any."
    )
    partitions = NamesField(
        label="Partitions", required=False, help_text="Leave out what it does not need. Empty: any."
    )
    days = forms.TypedMultipleChoiceField(
        label="Days on which it works", required=False, coerce=int, widget=forms.CheckboxSelectMultiple,
        choices=list(enumerate(hours.DAYS)),
    )  # fmt: skip
    start = forms.TimeField(
        label="From", required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    end = forms.TimeField(label="To", required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"))
    session = forms.CharField(required=False, max_length=20, widget=forms.HiddenInput)  # that it is to claim
    earlier = forms.BooleanField(required=False)
    aup_version = forms.CharField(widget=forms.HiddenInput)
    accept = forms.BooleanField(error_messages={"required": "Accept it for this agent, or leave it unregistered."})

    def __init__(self, *args: Any, lab: Lab, aup: AupVersion, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["harness"].choices = list(known_harnesses().items())  # type: ignore[attr-defined]
        self.fields["owner"].queryset = lab.members.filter(is_active=True).order_by("username")  # type: ignore[attr-defined]
        self.fields["accounts"].choices = _accounts(lab)  # type: ignore[attr-defined]
        if not self.fields["accounts"].choices:  # type: ignore[attr-defined]
            del self.fields["accounts"]
        self.fields["autonomy"].help_text += f" {staff_words()}"
        self.fields["expires"].initial = (clock.now() + DEFAULT_LIFE).astimezone(facility_zone()).date()
        self.fields["aup_version"].initial = aup.version
        self.fields["accept"].label = f"I have read AUP {aup.version} and accept it for this agent."

    def clean_name(self) -> str:
        """Refuse a name that the service would refuse, so that every fault of a form is told at once."""
        name: str = self.cleaned_data["name"].strip()
        if problem := principal_services.name_problem(name):
            raise forms.ValidationError(problem)
        return name

    def clean_expires(self) -> date:
        """Refuse an end that the service would refuse."""
        expires: date = self.cleaned_data["expires"]
        if problem := principal_services.expiry_problem(end_of_day(expires)):
            raise forms.ValidationError(problem)
        return expires

    def clean(self) -> dict[str, Any]:
        """Refuse hours of which a part is missing."""
        data = super().clean() or self.cleaned_data
        try:
            data["hours"] = self.declared_hours()
        except ValueError as error:
            self.add_error("days", str(error))
        return data

    def declared_hours(self) -> hours.Hours | None:
        """Return the hours that were typed; None where there are none. Raises ValueError."""
        days, start, end = (self.cleaned_data.get(name) for name in ("days", "start", "end"))
        if not (days or start or end):
            return None
        said = {"days": days or [], "zone": settings.FACILITY_TIME_ZONE}
        return hours.read_hours(said | {name: f"{at:%H:%M}" for name, at in (("start", start), ("end", end)) if at})

    def registration(self) -> Registration:
        """Return what was typed, as the service takes it."""
        data = self.cleaned_data
        return Registration(
            name=data["name"],
            harness=data["harness"],
            purpose=data["purpose"].strip(),
            expires=end_of_day(data["expires"]),
            autonomy=data["autonomy"],
            hosts=data["hosts"],
            partitions=data["partitions"],
            harness_version=data["harness_version"].strip(),
            accounts=data.get("accounts", []),
            hours=data["hours"],
        )


def staff_words() -> str:
    """Say from when on staff approve too."""
    return f"What has {counted(settings.STAFF_APPROVE_FROM, 'point')} and more also waits for staff."


def _accounts(lab: Lab) -> list[tuple[str, str]]:
    """Return the accounts of a lab that anybody of it may charge: who answers for the agent is known at the end."""
    known = Association.objects.filter(account__lab=lab, ended=None, cluster_user__user__memberships__lab=lab)
    return [(name, name) for name in known.order_by("account__name").values_list("account__name", flat=True).distinct()]


class ReasonForm(forms.Form):
    """A reason, and for how long."""

    reason = WordsField(max_length=300)
    days = forms.TypedChoiceField(
        label="Until",
        required=False,
        coerce=int,
        empty_value=None,
        choices=[(0, "Until somebody resumes it"), (1, "Tomorrow"), (7, "In 7 days"), (30, "In 30 days")],
    )

    def until(self) -> datetime | None:
        """Return the end of a suspension, or None for an open one."""
        days = self.cleaned_data.get("days") or 0
        return clock.now() + timedelta(days=days) if days else None


def reason_form(request: HttpRequest) -> ReasonForm:
    """Return what was posted as the reason of an act. Errors: `Invalid` without one."""
    form = ReasonForm(request.POST)
    if not form.is_valid():
        raise Invalid(
            "A reason is needed, 300 characters at most.", code="reason_missing", remedy="Go back and say why."
        )
    return form


def reason_of(request: HttpRequest) -> str:
    """Return the reason of an act. Errors: `Invalid` without one."""
    return str(reason_form(request).cleaned_data["reason"])


class TokenForm(forms.Form):
    """What a new token may do, and from where."""

    label = WordsField(max_length=80, required=False, help_text="So that you know it again.")
    scopes = forms.MultipleChoiceField(
        label="It may", widget=forms.CheckboxSelectMultiple, help_text="Leave out what it does not need."
    )
    networks = NamesField(
        label="Only from", required=False, help_text="Address ranges such as 10.31.4.0/24. Empty: anywhere."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from principals.engine import scopes, tokens

        super().__init__(*args, **kwargs)
        offered = scopes.scopes_for(tokens.TokenKind.AGENT)
        self.fields["scopes"].choices = [(scope.name, scope.words) for scope in offered]  # type: ignore[attr-defined]
        self.fields["scopes"].initial = [scope.name for scope in offered if scope.default]


class RenewForm(forms.Form):
    """A new end of a registration."""

    expires = forms.DateField(
        label="Registration ends",
        help_text="At most a year from now.",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["expires"].initial = (clock.now() + DEFAULT_LIFE).astimezone(facility_zone()).date()


class HandoverForm(forms.Form):
    """Who is to answer for an agent."""

    taker = forms.ModelChoiceField(
        User.objects.none(),
        label="Who answers for it from now on",
        empty_label="Choose somebody of the lab",
        help_text="It passes once both sides agree; its tokens are revoked then.",
        to_field_name="username",
    )

    def __init__(self, *args: Any, agent: Agent, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        others = agent.lab.members.filter(is_active=True).exclude(pk=agent.owner_id)
        self.fields["taker"].queryset = others.order_by("username")  # type: ignore[attr-defined]
