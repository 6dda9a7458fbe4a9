"""Staff publish a version of the policy in the browser; it lapses; the agent is refused with a link, which fixes it."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from portal.cli.main import main
from tests.e2e.visits import visit
from tests.support import demo

pytestmark = [pytest.mark.browser, pytest.mark.outside]
STAFF, PI, AGENT = "u0007", "u0398", "okafor-docking"
_TOKEN = (
    "from principals.models import Agent; from principals import services as s; from principals.permissions import "
    "actor_for_user as a; g = Agent.objects.get(name='okafor-docking'); "
    "print(s.issue_agent_token(actor=a(g.owner), agent=g).plain)"
)
_LAPSE = (
    "from policies.models import AupVersion; from policies.tasks import hold_lapsed_aup; "
    "from portal.core import clock; "
    "AupVersion.objects.filter(version='2027-01').update(holds_from=clock.now()); print(hold_lapsed_aup())"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[demo.Portal]:
    """A demo facility of this test's own: it holds every agent there."""
    data = demo.demo_folder(tmp_path_factory.mktemp("lapse") / "var")
    with demo.portal(data, DEMO="0") as running:
        running.wait_for(running.ready_line)
        yield running


def _say(site: demo.Portal, script: str) -> str:
    return demo.manage(site.data, "shell", "--no-imports", "-c", script).stdout.splitlines()[-1]


def _ask(site: demo.Portal, token: str) -> tuple[int, dict]:
    request = urllib.request.Request(f"{site.url}/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_new_version_lapses_and_is_accepted(browser, site, tmp_path, monkeypatch):
    token = _say(site, _TOKEN)
    with visit(browser, site, STAFF) as seen:
        page = seen.page
        assert seen.open("/aup/") == 200
        page.get_by_role("link", name="Write a new version").click()
        page.locator("[name=pack]").select_option("cautious")
        page.get_by_role("button", name="Start a draft").click()
        page.locator("[name=version]").fill("2027-01")
        page.locator("[name=effective]").fill("2026-01-01")
        page.locator("[name=grace_days]").fill("1")
        page.get_by_role("button", name="Save and preview").click()
        expect(page.locator("#preview")).to_contain_text("No long unattended runs.")
        assert seen.axe() == []
        page.get_by_role("button", name="Publish 2027-01").click()
        expect(page.get_by_text("AUP 2027-01 is published.")).to_be_visible()
        assert seen.messages == []

    with visit(browser, site, PI) as seen:
        seen.open(f"/agents/{AGENT}/")
        expect(seen.page.get_by_text("It works on until")).to_be_visible()
    assert _ask(site, token)[0] == 200

    assert int(_say(site, _LAPSE)) > 0
    status, said = _ask(site, token)
    assert (status, said["code"]) == (403, "aup_required")
    link = next(word for word in said["remedy"].split() if word.startswith("http"))

    with visit(browser, site, PI) as seen:
        page = seen.page
        seen.open(urlsplit(link).path)
        assert seen.axe() == []
        page.get_by_role("button", name="I have read AUP 2027-01").click()
        expect(page.get_by_text(f"AUP 2027-01 is accepted for {AGENT}.")).to_be_visible()
        assert seen.messages == []
    assert _ask(site, token)[0] == 200

    monkeypatch.setenv("GATEHOUSE_URL", site.url)
    monkeypatch.setenv("GATEHOUSE_TOKEN", token)
    assert main(["init", str(tmp_path)]) == 0
    assert "Rules of this cluster (policy 2027-01)" in (tmp_path / "AGENTS.md").read_text()
