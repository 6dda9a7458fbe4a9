"""What an agent’s page says of its harness: the figures, how to begin, and the word of who answers for the agent."""

from typing import Any

import pytest

from principals.models import Agent
from telemetry import services
from telemetry.models import HarnessChoice, HarnessDay
from tests import factories
from tests.conftest import Api, Cast, sign_in
from tests.dashboard.test_activity_pages import words
from tests.telemetry.otlp import ago, counter, logs, metrics, point, send

pytestmark = [pytest.mark.django_db, pytest.mark.sql, pytest.mark.usefixtures("standing_clock")]


@pytest.fixture
def told(cast: Cast, settings) -> None:
    """A harness that told what it cost, wrote and was allowed."""
    settings.OTLP = "on"
    api = Api(factories.make_token(cast.agent))
    send(api, "metrics", metrics(counter("claude_code.cost.usage", [point(3.25, ago(5))])))
    asked = {"name": "tool_decision", "tool_name": "Bash"}
    decisions = [asked | {"decision": "accept"} for _ in range(3)] + [asked | {"decision": "reject"}]
    tokens = {"name": "api_request", "output_tokens": 1200, "cache_read_tokens": 50}
    send(api, "logs", logs(*decisions, tokens, asked | {"decision": "accept", "source": "config"}))
    services.refresh_harness_days()


def agent_page(cast: Cast, who: str) -> Any:
    return sign_in(getattr(cast, who)).get(cast.agent.get_absolute_url())


@pytest.mark.parametrize("who", ["colleague", "pi", "manager", "staff", "auditor"])
def test_those_who_look_after_it_see_what_it_told(cast: Cast, told: None, who: str):
    shown = words(agent_page(cast, who))
    assert "$3.25 in thirty days; 25% of what it asked for was declined" in shown
    for said in ("1 declined; 1 by settings", "Tokens written 1,200 50 read from cache", "of 1 request to the model"):
        assert said in shown


def test_the_chart_has_its_words_and_its_numbers(cast: Cast, told: None):
    panel = agent_page(cast, "pi").context["telling"]
    assert "most on" in panel.chart_label and "$3.25" in panel.chart_label
    (row,) = panel.numbers["rows"]
    assert row[1:] == ["$3.25", "1", "1,200", "3", "1"]
    figure = sign_in(cast.pi).get(f"{cast.agent.get_absolute_url()}telemetry.json").json()
    assert sum(figure["data"][0]["y"]) == 3.25


def test_a_member_sees_nothing_of_a_colleagues_harness(cast: Cast, told: None):
    member = factories.make_user("member")
    cast.lab.memberships.create(user=member, role="member")
    browser = sign_in(member)
    assert browser.get(cast.agent.get_absolute_url()).context["telling"] is None
    assert sum(browser.get(f"{cast.agent.get_absolute_url()}telemetry.json").json()["data"][0]["y"]) == 0


def test_where_the_site_takes_none_there_is_no_panel(cast: Cast):
    assert agent_page(cast, "colleague").context["telling"] is None


def test_the_owner_agrees_and_declines_on_the_page(cast: Cast, settings):
    settings.OTLP = "ask"
    assert "Nothing is taken until you agree" in words(agent_page(cast, "colleague"))
    assert "until colleague agrees" in words(agent_page(cast, "pi"))
    assert "Agree for all my agents" not in words(agent_page(cast, "pi"))
    browser, url = sign_in(cast.colleague), f"{cast.agent.get_absolute_url()}telemetry/"
    page = browser.post(url, {"agreed": "yes"}, follow=True)
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http" in words(page)
    assert HarnessChoice.objects.get().agreed
    page = browser.post(url, {"agreed": "no"}, follow=True)
    assert "what was kept of them is deleted" in words(page)
    assert not HarnessChoice.objects.get().agreed


def test_declining_deletes_what_is_shown(cast: Cast, told: None):
    page = sign_in(cast.colleague).post(f"{cast.agent.get_absolute_url()}telemetry/", {"agreed": "no"}, follow=True)
    assert not HarnessDay.objects.exists()
    assert not page.context["telling"].has_told


def test_nobody_decides_for_another(cast: Cast, settings):
    settings.OTLP = "ask"
    for who in ("pi", "manager", "staff"):
        answer = sign_in(getattr(cast, who)).post(f"{cast.agent.get_absolute_url()}telemetry/", {"agreed": "yes"})
        assert answer.status_code == 403
    assert not HarnessChoice.objects.exists()


def test_of_a_harness_we_do_not_know_it_says_so(cast: Cast, settings):
    settings.OTLP = "on"
    Agent.objects.filter(pk=cast.agent.pk).update(harness="aider")
    assert "What Aider tells over OpenTelemetry is not known here" in words(agent_page(cast, "pi"))


def test_a_harness_that_tells_no_cost_is_not_called_free(cast: Cast, settings):
    settings.OTLP = "on"
    Agent.objects.filter(pk=cast.agent.pk).update(harness="codex")
    api = Api(factories.make_token(cast.agent))
    send(api, "logs", logs({"name": "codex.conversation_starts", "conversation.id": "c"}, prefix="codex."))
    services.refresh_harness_days()
    page = agent_page(cast, "pi")
    shown, panel = words(page), page.context["telling"]
    assert "It told no cost" in shown and "Tokens written by day" in shown
    assert "$" not in "".join([panel.title, panel.chart_label, *map(str, panel.numbers["rows"])])
