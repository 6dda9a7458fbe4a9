"""On My lab: stop all agents of one's lab, or all of one's own, and give back what one stopped."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from portal.core import clock
from portal.core.errors import Invalid
from portal.dashboard.agents.forms import WordsField, reason_of
from principals import permissions
from principals.actors import Actor
from principals.models import Lab
from principals.services import kill_switches
from principals.web import PageRequest, page

LAB, OWN = "lab", "own"


class StopForm(forms.Form):
    """Whose agents, why, and until when."""

    whose = forms.ChoiceField(label="Stop", choices=[(LAB, "All agents of the lab"), (OWN, "All my own agents")])
    reason = WordsField(max_length=300, help_text="The agents, their people and staff are told it.")
    hours = forms.TypedChoiceField(
        label="Ends by itself", coerce=int, initial=24,
        choices=[(1, "In an hour"), (8, "In 8 hours"), (24, "Tomorrow"), (168, "In 7 days"), (719, "In 30 days")],
    )  # fmt: skip

    def __init__(self, *args: Any, manages: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not manages:
            self.fields["whose"].choices = [(OWN, "All my own agents")]  # type: ignore[attr-defined]

    def until(self) -> datetime:
        """Return when it ends by itself."""
        return clock.now() + timedelta(hours=self.cleaned_data["hours"])


def stop_panel(actor: Actor, lab: Lab) -> dict[str, Any] | None:
    """Return what a member may stop on their lab's page, and what they stopped; None for whoever is no member."""
    if lab.pk not in actor.member_lab_ids:
        return None
    manages = permissions.can(actor, "agents.stop_of_lab", lab)
    return {
        "form": StopForm(manages=manages, auto_id="stop_%s"), "manages": manages,
        "in_force": list(kill_switches.own_in_force(actor=actor, lab=lab)),
    }  # fmt: skip


@require_POST
@page
def stop(request: PageRequest, lab: str) -> HttpResponseBase:
    """Stop the lab's agents, or the person's own wherever they are."""
    chosen = _own_lab(request, lab)
    form = StopForm(request.POST, manages=permissions.can(request.actor, "agents.stop_of_lab", chosen))
    if not form.is_valid():
        raise Invalid(
            "Say whose agents to stop, why, and until when.", code="stop_incomplete", remedy="Go back and say so.",
            extra={"fields": sorted(form.errors)},
        )  # fmt: skip
    switch = kill_switches.stop_own(
        actor=request.actor, lab=chosen if form.cleaned_data["whose"] == LAB else None,
        reason=form.cleaned_data["reason"], until=form.until(),
    )  # fmt: skip
    words = f"{switch.target_label}: stopped. Tokens answer 403 and sockets close; jobs in Slurm go on."
    messages.success(request, words)
    return _back(chosen)


@require_POST
@page
def give_back(request: PageRequest, lab: str, pk: int) -> HttpResponseBase:
    """Give back what the lab or the person stopped themselves."""
    chosen = _own_lab(request, lab)
    switch = get_object_or_404(kill_switches.own_in_force(actor=request.actor, lab=chosen), pk=pk)
    kill_switches.give_back_own(actor=request.actor, lab=chosen, switch=switch, reason=reason_of(request))
    messages.success(request, f"{switch.target_label}: given back, as they were. Other holds stay.")
    return _back(chosen)


def _own_lab(request: PageRequest, name: str) -> Lab:
    return get_object_or_404(Lab.objects.filter(pk__in=request.actor.member_lab_ids), name=name)


def _back(lab: Lab) -> HttpResponseBase:
    return redirect(f"{reverse('my-lab')}?lab={lab.name}#stop")
