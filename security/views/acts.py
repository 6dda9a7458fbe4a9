"""What can be done to an incident: the buttons and panels of its page, and doing what they post.

The posted field `act` says it all: `move:<state seen>:<state wanted>`, `assign:me`, `assign:nobody`, `contain`,
`release`, `note`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from portal.core.errors import DomainError, Invalid
from principals import permissions
from principals.web import PageRequest, add_refusal
from security import services
from security.engine import incidents as rules
from security.engine.recurrence import CURE_STANDS_FOR, RULING_STANDS_FOR
from security.forms import NoteForm, ReasonForm
from security.models import Incident

_CLOSING = {rules.State.RESOLVED, rules.State.FALSE_ALARM, rules.State.ACCEPTED}


@dataclass(frozen=True, slots=True)
class Act:
    """One thing to do next. With `panel` it opens a panel that asks for a reason; else its button does it."""

    label: str
    value: str  # of the field `act`
    consequence: str
    style: str = ""
    panel: str = ""
    keep: str = ""  # the way out of the panel, named by what it keeps
    form: ReasonForm | None = None


def perform(request: PageRequest, incident: Incident) -> str:
    """Do what the form asks; return words for what was done. Errors: those of the services."""
    permissions.require(request.actor, "incident.act", incident, remedy=services.ASK)
    verb, *words = request.POST.get("act", "").split(":")
    doer = _DOERS.get(verb)
    if doer is None or len(words) != _WORDS.get(verb, 0):
        raise Invalid("The form asks for something unknown.", code="act_unknown", remedy="Reload the page.")
    return doer(request, incident, words)


def _move(request: PageRequest, incident: Incident, words: list[str]) -> str:
    seen, to = words
    reason = request.POST.get("reason", "")
    services.move_incident(actor=request.actor, incident=incident, to=to, reason=reason, seen=seen)
    return f"{incident.number} is {incident.get_state_display().lower()}."


def _assign(request: PageRequest, incident: Incident, words: list[str]) -> str:
    to = request.user if words == ["me"] else None
    services.assign(actor=request.actor, incident=incident, to=to)
    return f"{incident.number} is yours." if to else f"Nobody is assigned to {incident.number} now."


def _contain(request: PageRequest, incident: Incident, words: list[str]) -> str:
    services.contain_agent(actor=request.actor, incident=incident, reason=request.POST.get("reason", ""))
    return f"{incident.agent} is held; its tokens answer 403 from now on."


def _release(request: PageRequest, incident: Incident, words: list[str]) -> str:
    services.release_agent(actor=request.actor, incident=incident, reason=request.POST.get("reason", ""))
    return f"{incident.number} no longer holds {incident.agent}."


def _note(request: PageRequest, incident: Incident, words: list[str]) -> str:
    services.add_note(actor=request.actor, incident=incident, text=request.POST.get("text", ""))
    return "The note is kept."


_DOERS: dict[str, Callable[[PageRequest, Incident, list[str]], str]] = {
    "move": _move, "assign": _assign, "contain": _contain, "release": _release, "note": _note,
}  # fmt: skip
_WORDS = {"move": 2, "assign": 1}


def offered(request: PageRequest, incident: Incident, refusal: DomainError | None = None) -> list[Act]:
    """Return what can be done next, in order of advice."""
    acts = [_contain_act(incident)] if incident.agent and incident.is_open and not incident.hold_id else []
    steps = [_step(incident, step) for step in rules.allowed_transitions(rules.State(incident.state))]
    acts = [*steps[:1], *acts, *steps[1:]]
    if incident.hold_id:
        acts.append(_release_act(incident))
    return [_with_form(request, act, refusal) for act in acts]


def _step(incident: Incident, step: rules.Transition) -> Act:
    primary = step.target not in {rules.State.FALSE_ALARM, rules.State.ACCEPTED} and step.verb != "Back to triaged"
    return Act(
        label=step.verb,
        value=f"move:{incident.state}:{step.target.value}",
        consequence=_consequence(incident, step),
        style="primary" if primary else "",
        panel=f"to-{step.target.value}" if step.needs_reason else "",
        keep="Keep it closed" if step.target is rules.State.REOPENED else "Keep it open",
    )


def _consequence(incident: Incident, step: rules.Transition) -> str:
    held = f" {incident.agent} may work again." if incident.hold_id and step.target in _CLOSING else ""
    cure, ruling = CURE_STANDS_FOR.days, RULING_STANDS_FOR.days
    words = {
        rules.State.TRIAGED: "Says that a person has read it and believes it.",
        rules.State.CONTAINED: "Says that it can do no more harm, whatever stopped it.",
        rules.State.RESOLVED: f"Closes it as cured.{held} Seen again within {cure} days it opens again.",
        rules.State.FALSE_ALARM: f"Closes it.{held} For {ruling} days the same finding is taken in silently, "
        "unless it is worse.",
        rules.State.ACCEPTED: f"Closes it as a risk InfoSec bears for {ruling} days.{held} Worse ones reopen it.",
        rules.State.REOPENED: "Its clocks start again, from now.",
    }
    return words[step.target]


def _contain_act(incident: Incident) -> Act:
    return Act(
        label="Contain the agent", value="contain", style="critical", panel="contain", keep="Keep it active",
        consequence=f"Every token of {incident.agent} answers 403 at once, and the incident becomes contained. "
        "Jobs that run go on. Its owner and PI read the reason wherever the agent is refused.",
    )  # fmt: skip


def _release_act(incident: Incident) -> Act:
    return Act(
        label="Let the agent work again", value="release", panel="release", keep="Keep it held",
        consequence=f"{incident.agent} may use its tokens again, unless another incident holds it. "
        "The incident stays as it is.",
    )  # fmt: skip


def _with_form(request: PageRequest, act: Act, refusal: DomainError | None) -> Act:
    """Give an act its form; the one that was refused keeps what was typed and says why it was refused."""
    if not act.panel:
        return act
    prefix = f"id_{act.panel}_%s"
    if refusal is None or request.POST.get("act") != act.value:
        form = ReasonForm(auto_id=prefix)
    else:
        form = ReasonForm(request.POST, auto_id=prefix)
        _explain(form, refusal)
    return Act(act.label, act.value, act.consequence, act.style, act.panel, act.keep, form)


def note_form(request: PageRequest, refusal: DomainError | None) -> NoteForm:
    """Return the form for a note, with its refusal where there was one."""
    if refusal is None or request.POST.get("act") != "note":
        return NoteForm(auto_id="id_note_%s")
    form = NoteForm(request.POST, auto_id="id_note_%s")
    _explain(form, refusal)
    return form


def _explain(form: ReasonForm | NoteForm, refusal: DomainError) -> None:
    """Say on the form why it was refused; where the form itself knows, its own words are enough."""
    if form.is_valid():
        add_refusal(form, refusal)
