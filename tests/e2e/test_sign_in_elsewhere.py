"""A person signs in with Chromium through a real provider; the policy that forbids other hosts lets them through."""

from pathlib import Path

import pytest

from tests.e2e.portal_server import running_portal
from tests.e2e.visits import Visit
from tests.support.openid import running_provider

pytestmark = [pytest.mark.browser, pytest.mark.outside]


def test_through_the_provider_and_back(browser, tmp_path: Path, monkeypatch):
    with running_provider() as provider:
        settings = {
            "OIDC_ISSUER": provider.issuer, "OIDC_CLIENT_ID": "gatehouse", "OIDC_CLIENT_SECRET": "loopback-only",
            "OIDC_NAME": "Northgate ID", "LOGIN_CLAIM": "preferred_username", "GROUPS_CLAIM": "groups",
            "GROUP_ROLES": "rc=staff",
        }  # fmt: skip
        for name, value in settings.items():
            monkeypatch.setenv(f"GATEHOUSE_{name}", value)
        provider.tell("sub-7", preferred_username="u0007", groups=["rc"])
        with running_portal(tmp_path / "var") as portal:
            portal.run("from tests import factories; factories.make_user('u0007'); print('{}')")
            context = browser.new_context()
            seen = Visit(context.new_page(), portal)  # type: ignore[arg-type]
            page = seen.page
            page.goto(f"{portal.url}/aup/")  # where they wanted to go
            assert seen.axe() == []
            page.get_by_role("link", name="Go on with Northgate ID").click()
            page.locator("[name=sub]").fill("sub-7")
            page.get_by_role("button", name="Authorize").click()
            page.wait_for_url(f"{portal.url}/aup/")
            assert page.locator(".rail__who").inner_text() == "u0007"
            assert page.locator(".rail__foot").inner_text().find("Research computing staff") > 0
            page.get_by_role("button", name="Sign out").click()
            page.wait_for_url(f"{portal.url}/sign-in/")
            assert not [text for text in seen.messages if "Content Security Policy" in text]
            context.close()
