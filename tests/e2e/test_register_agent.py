"""A PI registers an agent in the browser, accepts the AUP, sees its token once, and the token says who it is."""

import contextlib
import json
import urllib.request

import pytest
from playwright.sync_api import Error, expect

from portal.cli.main import main
from tests.e2e.visits import visit

pytestmark = [pytest.mark.browser, pytest.mark.outside]
PI = "u0398"
NAME = "okafor-titrator"


def test_a_pi_registers_an_agent_and_sees_its_token_once(browser, facility, monkeypatch, capsys):
    with visit(browser, facility, PI) as seen:
        page = seen.page
        assert seen.open("/my-lab/") == 200
        form = page.locator("form[action*='/register/']")
        form.locator("[name=name]").fill(NAME)
        form.locator("[name=harness]").select_option("claude-code")
        form.locator("[name=purpose]").fill("Titrates protonation states before each run.")
        form.locator("[name=owner]").select_option(PI)
        form.locator("[name=hosts]").fill("login02")
        form.get_by_label("Unattended").check()
        form.locator("[name=partitions]").fill("gpu-shared")
        form.locator("[name=purpose]").focus()
        pass_ = page.locator("#pass")
        for words in ("Elevated", "then staff", "login02", "gpu-shared"):
            expect(pass_).to_contain_text(words)
        form.get_by_label("Supervised").check()
        form.locator("[name=partitions]").fill("")
        form.locator("[name=purpose]").focus()
        expect(pass_).to_contain_text("Standard")

        form.get_by_role("button", name="Register agent").click()
        expect(page.get_by_text("Accept it for this agent, or leave it unregistered.").first).to_be_visible()

        form.locator("[name=accept]").check()
        form.get_by_role("button", name="Register agent").click()
        shown = page.locator("[data-token]")
        expect(shown).to_have_count(1)
        token = shown.inner_text()
        assert token.startswith("gha_")

        expect(page.get_by_role("link", name="I have copied it")).to_have_attribute("href", f"/agents/{NAME}/")
        page.reload()  # sends the form again
        expect(page.get_by_text("was shown once and cannot be shown again")).to_be_visible()
        assert f"/agents/{NAME}/" in page.url
        secret = token.partition(".")[2]
        assert token not in page.content() and secret not in page.content()
        page.reload()
        assert secret not in page.content()
        with contextlib.suppress(Error):  # the page that showed it was stored nowhere: there is nothing to go back to
            page.go_back()
        expect(page.locator("body")).not_to_contain_text(secret)
        assert seen.elsewhere == []
        assert [text for text in seen.messages if not any(known in text for known in ("422", "CACHE_MISS"))] == []

    request = urllib.request.Request(f"{facility.url}/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:
        me = json.load(answer)
    assert (me["agent"], me["acts_for"], me["lab"], me["status"]) == (NAME, PI, "okafor", "active")
    assert "me:read" in me["token"]["scopes"]
    assert "not_checked_in" in {item["code"] for item in me["missing"]}

    monkeypatch.setenv("GATEHOUSE_URL", facility.url)
    monkeypatch.setenv("GATEHOUSE_TOKEN", token)
    assert main(["me"]) == 0
    assert f"{NAME} (claude-code, supervised) acts for {PI} of okafor." in capsys.readouterr().out
