"""The kill switch: whom it would reach is shown first, then it is pulled, agreed to, withdrawn or ended."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from portal.core import clock
from portal.core.errors import DomainError
from portal.dashboard.agents.forms import WordsField, reason_of
from principals import permissions, selectors
from principals.engine.harnesses import known_harnesses
from principals.models import KillSwitch, Place
from principals.services import kill_switches as switch_services
from principals.services.kill_switches import Target
from principals.web import PageRequest, add_refusal, page
from telemetry.selectors.agents import count_running

PAGE_SIZE: Final = 25
SHOWN: Final = 12  # agents of a preview
RELATED: Final = ("asked_by", "decided_by", "ended_by", "hold")


class NamedField(forms.CharField):
    """A name that most kinds need: whether it may be empty is judged with the kind."""

    def validate(self, value: Any) -> None:
        pass


class TargetForm(forms.Form):
    """Whom to stop."""

    use_required_attribute = False

    kind = forms.ChoiceField(
        label="Stop", choices=KillSwitch.Target.choices, help_text="Agents alone: people stay signed in."
    )
    which = NamedField(
        label="Which one", max_length=100,
        help_text=f"The agent’s name, the login name, the lab’s name, or one of {', '.join(known_harnesses())}. "
        "For every agent: none.",
    )  # fmt: skip

    def target(self) -> Target | None:
        """Return what was named, or None with the fault on the form."""
        if not self.is_valid():
            return None
        try:
            return switch_services.find_target(self.cleaned_data["kind"], self.cleaned_data["which"])
        except DomainError as error:
            add_refusal(self, error)
            return None


class PullForm(forms.Form):
    """Why, and until when."""

    reason = WordsField(max_length=300, help_text="The agents, their people and their PIs are told it.")
    hours = forms.TypedChoiceField(
        label="Ends by itself", coerce=int, initial=24,
        choices=[(1, "In an hour"), (8, "In 8 hours"), (24, "Tomorrow"), (168, "In 7 days"), (719, "In 30 days")],
    )  # fmt: skip
    drill = forms.BooleanField(
        label="A drill: count and record how far it would reach, and stop nobody", required=False
    )

    def until(self) -> datetime:
        """Return when it ends by itself."""
        return clock.now() + timedelta(hours=self.cleaned_data["hours"])


@page
def kill_switches(request: PageRequest) -> HttpResponseBase:
    """List what was stopped and why; with `?kind=&which=` show whom a switch would reach; a POST pulls it."""
    permissions.require(request.actor, "kill_switch.look")
    asked = TargetForm(request.GET or None)
    target = asked.target() if request.GET.get("kind") else None
    pulled = PullForm(request.POST or None)
    if request.method == "POST":
        permissions.require(request.actor, "kill_switch.pull")
        if target is not None and pulled.is_valid() and (switch := _pull(request, target, pulled)):
            return redirect(switch)
    listed = KillSwitch.objects.visible_to(request.actor).select_related(*RELATED)
    at = Paginator(listed, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "target_form": asked, "pull_form": pulled, "target": target, "preview": _preview(request, target),
        "may_pull": permissions.can(request.actor, "kill_switch.pull"), "alone": settings.KILL_SWITCH_ALONE,
        "page": at, "rows": [{"switch": switch, "state": state_of(switch)} for switch in at.object_list],
        "now": clock.now(),
    }  # fmt: skip
    return render(request, "agents/kill_switches.html", context, status=422 if request.method == "POST" else 200)


def _pull(request: PageRequest, target: Target, form: PullForm) -> KillSwitch | None:
    data = form.cleaned_data
    try:
        switch = switch_services.pull(
            actor=request.actor, target=target, reason=data["reason"], until=form.until(), is_drill=data["drill"]
        )
    except DomainError as error:
        add_refusal(form, error)
        return None
    messages.success(request, _DONE[switch.state].format(target=switch.target_label))
    return switch


_DONE: Final = {
    KillSwitch.State.ASKED.value: "{target}: a second person has an hour to agree. Nobody is stopped yet.",
    KillSwitch.State.IN_FORCE.value: "{target}: stopped. Tokens answer 403 and sockets close; jobs in Slurm go on.",
    KillSwitch.State.DRILL.value: "{target}: a drill. Nobody is stopped.",
}


def _preview(request: PageRequest, target: Target | None) -> dict[str, Any] | None:
    """Return whom a switch would reach now: counts, the first agents, their jobs that run."""
    if target is None:
        return None
    agents = selectors.agents_at(target.place)
    return {
        "reach": selectors.reach_of(target.place), "running": count_running(agents),
        "agents": agents.select_related("owner", "lab").order_by("name")[:SHOWN],
        **_alone(request, target),
    }  # fmt: skip


def _alone(request: PageRequest, target: Target) -> dict[str, Any]:
    if not permissions.can(request.actor, "kill_switch.pull"):
        return {}
    earlier = switch_services.stopped_alone(request.user)
    count = selectors.agents_at_any([target.place, *earlier]).count()
    return {
        "needs_second": count > settings.KILL_SWITCH_ALONE, "together": count,
        "earlier": selectors.agents_at_any(earlier).count() if earlier else 0,
    }  # fmt: skip


@page
def kill_switch(request: PageRequest, pk: int) -> HttpResponseBase:
    """Show one switch: what it reached when it was decided, and now."""
    permissions.require(request.actor, "kill_switch.look")
    switch = _find(request, pk)
    place: Place = switch_services.place_of(switch)
    context = {
        "switch": switch, "state": state_of(switch), "reach": switch.reach, "now_reaches": selectors.reach_of(place),
        "may_pull": permissions.can(request.actor, "kill_switch.pull"),
        "is_own": request.user.pk == switch.asked_by_id,
    }  # fmt: skip
    return render(request, "agents/kill_switch.html", context)


def state_of(switch: KillSwitch) -> str:
    """Return the state to show: one whose time came stops nobody, one that nobody agreed to waits no more."""
    is_past = (switch.state == KillSwitch.State.IN_FORCE and not switch.is_in_force) or (
        switch.state == KillSwitch.State.ASKED and not switch.is_waiting
    )
    return "lapsed" if is_past else str(switch.state)


def _find(request: PageRequest, pk: int) -> KillSwitch:
    return get_object_or_404(KillSwitch.objects.visible_to(request.actor).select_related(*RELATED), pk=pk)


@require_POST
@page
def agree(request: PageRequest, pk: int) -> HttpResponseBase:
    """Agree as the second person: agents stop."""
    permissions.require(request.actor, "kill_switch.pull")
    switch = switch_services.second(actor=request.actor, switch=_find(request, pk))
    messages.success(request, _DONE[switch.state].format(target=switch.target_label))
    return redirect(switch)


def _with_reason(act: Callable[..., KillSwitch], done: str) -> Callable[..., HttpResponseBase]:
    @require_POST
    @page
    def view(request: PageRequest, pk: int) -> HttpResponseBase:
        permissions.require(request.actor, "kill_switch.pull")
        switch = act(actor=request.actor, switch=_find(request, pk), reason=reason_of(request))
        messages.success(request, done.format(target=switch.target_label))
        return redirect(switch)

    return view


withdraw = _with_reason(switch_services.withdraw, "{target}: withdrawn. Nobody was stopped.")
end = _with_reason(switch_services.end, "{target}: given back, as they were. Other holds stay.")
