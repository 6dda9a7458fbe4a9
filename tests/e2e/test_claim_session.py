"""A person sees a session that nobody registered, claims it, takes it back, and registers an agent for it instead."""

import pytest
from playwright.sync_api import expect

from tests.e2e.visits import visit
from tests.support import demo

pytestmark = [pytest.mark.browser, pytest.mark.outside]
PI = "u0398"
NAME = "okafor-seen"
SEE = """
from datetime import timedelta
from portal.core import clock
from principals.models import Agent, AgentSession, Cluster, ClusterUser
cluster = Cluster.objects.get()
login = ClusterUser.objects.get(cluster=cluster, login="u0398")
agent = Agent.objects.filter(owner=login.user, status="active").order_by("name").first()
Agent.objects.filter(pk=agent.pk).update(hosts=[])
AgentSession.objects.filter(cluster_user=login, agent=None, kind="agent").update(agent=agent)  # only these three
for hours in (1, 5, 9):
    AgentSession.objects.create(cluster=cluster, cluster_user=login, host="login07", kind="agent", source="collector",
        harness=agent.harness, started=clock.now() - timedelta(hours=hours), process=f"seen:{hours}")
print(agent.name)
"""


def test_an_owner_claims_a_session_undoes_it_and_registers_for_it(browser, facility):
    mine = demo.manage(facility.data, "shell", "--no-imports", "-c", SEE).stdout.split()[-1]
    with visit(browser, facility, PI) as seen:
        page = seen.page
        assert seen.open("/my-lab/") == 200
        strangers = page.locator("[id=unregistered]")
        expect(strangers).to_contain_text("login07")
        assert seen.axe() == []
        strangers.get_by_label("and 2 earlier ones").check()
        strangers.get_by_role("button", name=f"It is {mine}").click()
        expect(page.get_by_text(f"3 sessions claimed for {mine}.")).to_be_visible()
        assert seen.axe() == []
        page.get_by_role("button", name="Take back the claim of 3 sessions").click()
        expect(page.get_by_text("3 sessions taken back")).to_be_visible()

        seen.open("/my-lab/")
        strangers.get_by_role("link", name="Register an agent").click()
        form = page.locator("#registration")
        expect(form.locator("[name=hosts]")).to_have_value("login07")
        form.locator("[name=name]").fill(NAME)
        form.locator("[name=purpose]").fill("Was seen before it was registered.")
        form.locator("[name=partitions]").fill("shared")
        for day in ("Mon", "Tue"):
            form.get_by_label(day).check()
        form.locator("[name=start]").fill("08:00")
        form.locator("[name=end]").fill("18:00")
        form.locator("[name=purpose]").focus()
        expect(page.locator("#pass")).to_contain_text("Mon, Tue, 08:00 to 18:00")
        form.get_by_label("Take along 2 earlier sessions").check()
        form.locator("[name=accept]").check()
        form.get_by_role("button", name="Register agent").click()
        expect(page.locator("[data-token]")).to_have_count(1)
        page.get_by_role("link", name="I have copied it").click()
        expect(page.get_by_text("3 sessions claimed by u0398")).to_be_visible()
        expect(page.locator(".pass")).to_contain_text("Mon, Tue, 08:00 to 18:00")
        assert seen.elsewhere == []
        seen.open("/my-lab/")
        expect(page.locator("[id=unregistered]")).to_have_count(0)
