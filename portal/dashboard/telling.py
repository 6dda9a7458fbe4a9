"""The panel of what an agent's harness told of itself, and of who decides whether it may."""

from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings

from portal.dashboard import figures, formats
from principals.actors import Actor
from principals.engine.harnesses import harness_name
from principals.models import Agent
from telemetry import services
from telemetry.engine.otel.mapping import mapping_of
from telemetry.selectors import Period
from telemetry.selectors.harness import AgentTelling, HarnessUse, telling_of

DAYS: Final = 30
_WRITTEN: Final = "tokens:output"
DEFINITION: Final = (
    "Told by the harness itself over OpenTelemetry; cost is its own estimate at list prices, no bill. Decisions are "
    "those a person was asked for; what settings or hooks decided is counted apart."
)
HEAD: Final = ("Day (UTC)", "Cost", "Sessions", "Tokens written", "Accepted", "Declined")


@dataclass(frozen=True, slots=True)
class TellingPanel:
    """What the panel says. An owner may change `allowed`."""

    agent: Agent
    found: AgentTelling
    period: Period
    is_owner: bool
    allowed: bool
    definition = DEFINITION

    @property
    def whole(self) -> HarnessUse:
        return self.found.whole

    @property
    def has_told(self) -> bool:
        return bool(self.found.by_day)

    @property
    def is_known(self) -> bool:
        """Whether it is known what its harness emits."""
        return mapping_of(self.agent.harness) is not None

    @property
    def harness(self) -> str:
        return harness_name(self.agent.harness)

    @property
    def settings(self) -> str:
        """Return what points its harness here."""
        known = mapping_of(self.agent.harness)
        return known.settings.format(endpoint=f"{settings.BASE_URL}/api/v1/otlp") if known else ""

    @property
    def remedy(self) -> str:
        """Return what keeps prompts away."""
        known = mapping_of(self.agent.harness)
        return known.remedy if known else ""

    @property
    def title(self) -> str:
        """Say the finding: what it cost, and how much of what it asked for was declined."""
        whole = self.whole
        cost = f"{formats.money(whole.cost)} in thirty days" if whole.cost else "It told no cost"
        share = whole.rejected_share
        return cost if share is None else f"{cost}; {formats.percent(share, 0)} of what it asked for was declined"

    @property
    def decisions_note(self) -> str:
        """Say how many decisions were declined, and how many nobody was asked for."""
        return f"{formats.count(self.whole.rejected)} declined; {formats.count(self.whole.automatic)} by settings"

    @property
    def cost_note(self) -> str:
        """Say what a session cost; that no other harness tells it where this one does not."""
        sessions = len(self.whole.sessions)
        if not self.whole.cost:
            return "not told"
        return f"{formats.money(self.whole.cost / sessions)} a session" if sessions else ""

    @property
    def tokens_written(self) -> str:
        return formats.short(self.whole.of(_WRITTEN))

    @property
    def tokens_note(self) -> str:
        """Name the kinds of tokens beside those that were written."""
        others = {kind: number for kind, number in self.whole.tokens.items() if kind != "Output"}
        return ", ".join(f"{formats.short(number)} {kind.lower()}" for kind, number in others.items())

    @property
    def errors(self) -> int:
        return self.whole.of("errors")

    @property
    def lines(self) -> int:
        return self.whole.of("lines_added")

    @property
    def errors_note(self) -> str:
        return f"of {formats.counted(self.whole.of('requests'), 'request')} to the model"

    @property
    def lines_note(self) -> str:
        removed = formats.count(self.whole.of("lines_removed"))
        return f"{removed} removed, {formats.counted(self.whole.of('commits'), 'commit')}"

    @property
    def chart_title(self) -> str:
        return f"{_charted(self.whole)} by day"

    @property
    def chart_label(self) -> str:
        """Return the chart in words."""
        days = self.found.by_day
        values = {day: _value(use, self.whole) for day, use in days.items()}
        most = max(values, key=lambda day: values[day])
        said = f"{_charted(self.whole)} by day, told on {formats.counted(len(days), 'day')}"
        return f"{said}; most on {formats.day(most)}, {_written(values[most], self.whole)}."

    @property
    def chart_sub(self) -> str:
        return f"{formats.date_range(self.period.first, self.period.last)} (UTC)."

    @property
    def numbers(self) -> dict[str, Any]:
        """Return the table behind the chart: every day on which anything was told."""
        rows = [
            [
                formats.day(day), formats.money(use.cost if self.whole.cost else None),
                formats.count(len(use.sessions)), formats.count(use.of(_WRITTEN)),
                formats.count(use.accepted), formats.count(use.rejected),
            ]
            for day, use in self.found.by_day.items()
        ]  # fmt: skip
        return {"head": list(HEAD), "rows": rows}


def _charted(whole: HarnessUse) -> str:
    """Name what the chart is of: cost, and tokens where the harness tells no cost."""
    return "Cost" if whole.cost else "Tokens written"


def _value(use: HarnessUse, whole: HarnessUse) -> float:
    return use.cost if whole.cost else use.of(_WRITTEN)


def _written(value: float, whole: HarnessUse) -> str:
    return formats.money(value) if whole.cost else formats.count(value)


def telling_panel(actor: Actor, agent: Agent) -> TellingPanel | None:
    """Return the panel; None where there is nothing to show or to decide. At most two queries."""
    period = Period.last_days(DAYS)
    found = telling_of(actor, agent, period)
    takes = settings.OTLP != "off"
    is_owner = actor.is_person and actor.user == agent.owner
    looks_after = is_owner or actor.sees_facility or agent.lab_id in actor.visible_lab_ids
    if not found.by_day and not (takes and looks_after):
        return None
    allowed = takes and services.is_harness_telemetry_allowed(agent.owner)
    return TellingPanel(agent, found, period, is_owner and takes, allowed)


def telling_figure(actor: Actor, agent: Agent) -> figures.build.Figure:
    """Return the figure of what an agent's harness cost, or wrote, a day."""
    period = Period.last_days(DAYS)
    found = telling_of(actor, agent, period)
    values = [_value(found.by_day.get(day, HarnessUse()), found.whole) for day in period.days]
    words = [_written(value, found.whole) for value in values]
    series = figures.Series(_charted(found.whole), "agent", values, words=words)
    return figures.stacked_columns(period.days, [series], prefix="$" if found.whole.cost else "")
