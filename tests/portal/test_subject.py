"""What is held about a person: shown to them alone, given out, and erased; accounting and the audit trail stand."""

import json
import stat
import uuid
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from portal.core import audit
from portal.core.models import AuditEvent
from portal.rights import services
from principals import services as principal_services
from principals.actors import SYSTEM_ACTOR
from principals.models import Agent, AgentSession, ClusterUser, DataAccess, LabMembership, Notice, User
from principals.services.agents import Registration
from telemetry.models import ActivityMinute, Job
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.job_rows import DAY_0, make_job
from tests.telemetry.test_keep_to_agents import everything
from tests.webhooks.rows import make_webhook

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
WHO = "zebulon"  # a word that stands nowhere else


@pytest.fixture
def person(cast: Cast) -> User:
    """Somebody with a bit of everything."""
    person = factories.make_user(WHO, email=f"{WHO}@site.example", full_name="Z. Ebulon")
    LabMembership.objects.create(lab=cast.lab, user=person, role="member")
    login = factories.make_cluster_user(cast.cluster, person)
    actor = factories.actor_of(person)
    agent = principal_services.register_agent(
        actor=actor, lab=cast.lab, owner=person,
        registration=Registration(name=f"{WHO}-agent", harness="codex", purpose=f"For {WHO}.",
                                  expires=cast.agent.expires),
    )  # fmt: skip
    principal_services.approve_agent(actor=factories.actor_of(cast.pi), agent=agent)
    principal_services.lift_holds(
        actor=SYSTEM_ACTOR, subject_kind="agent", subject_id=agent.pk, kind="aup", reason="accepted"
    )
    factories.make_token(agent)
    principal_services.suspend_agent(actor=factories.actor_of(cast.pi), agent=agent, reason=f"{WHO} asked")
    make_job(login, cast.lab, submit=DAY_0, start=DAY_0, end=DAY_0 + 60, work_dir=f"/home/{WHO}", job_name="x", cpus=7)
    session = AgentSession.objects.create(cluster=cast.cluster, cluster_user=login, host="login01", started=DAY_0)
    ActivityMinute.objects.create(
        cluster=cast.cluster, host="login01", run=uuid.uuid4(), session=session, driver="agent",
        minute=audit.clock.now(), counts={"commands": 1},
    )  # fmt: skip
    make_webhook(person)
    return person


def exported(*line: str) -> dict[str, Any]:
    out = StringIO()
    call_command("subject", "export", WHO, "--purpose", "Article 15", *line, stdout=out)
    return json.loads(out.getvalue())


def erase(*line: str) -> str:
    out = StringIO()
    call_command("subject", "erase", WHO, "--purpose", "Article 17", *line, stdout=out)
    return out.getvalue()


class TestExport:
    def test_it_holds_their_rows_and_no_secret(self, cast: Cast, person: User):
        tables = {table["table"]: table["rows"] for table in exported()["tables"]}
        assert tables["principals.User"][0]["email"] == f"{WHO}@site.example"
        assert [job["work_dir"] for job in tables["telemetry.Job"]] == [f"/home/{WHO}"]
        assert len(tables["principals.AgentSession"]) == len(tables["telemetry.ActivityMinute"]) == 1
        assert "password" not in tables["principals.User"][0] and "digest" not in tables["principals.AgentToken"][0]

    def test_every_table_that_names_them_is_in_it(self, cast: Cast, person: User):
        """Whatever row holds their login name or one of their ids is given out, or its table is named with a reason."""
        naming = {label for label, row in everything() if any(WHO in str(value) for value in row.values())}
        given = {table["table"] for table in exported()["tables"] if table["rows"]}
        assert naming - given - {"core.LiveEvent"} == set()  # news of a lab names its agents, for 7 days

    def test_who_exports_says_what_for_and_the_person_reads_it(self, cast: Cast, person: User):
        with pytest.raises(CommandError, match="what for"):
            call_command("subject", "export", WHO, stdout=StringIO())
        exported()
        assert DataAccess.objects.get().purpose == "Article 15"
        assert Notice.objects.filter(person=person, kind="data_opened").count() == 1
        shown = sign_in(person).get("/held/").content.decode()
        assert "Article 15" in shown and "on the portal’s host" in shown
        assert "Article 15" not in sign_in(cast.colleague).get("/held/").content.decode()

    def test_the_file_is_its_owners_and_none_is_overwritten(self, cast: Cast, person: User, tmp_path: Path):
        file = tmp_path / "out.json"
        call_command("subject", "export", WHO, "--purpose", "x", "--out", str(file), stdout=StringIO())
        assert stat.S_IMODE(file.stat().st_mode) == 0o600 and json.loads(file.read_text())["person"] == WHO
        with pytest.raises(CommandError, match="cannot be written"):
            call_command("subject", "export", WHO, "--purpose", "x", "--out", str(file), stdout=StringIO())

    def test_the_inventory_prints_itself(self):
        out = StringIO()
        call_command("subject", "inventory", stdout=out)
        assert "`telemetry.Job`" in out.getvalue()


class TestPage:
    def test_it_counts_each_table_and_downloads(self, cast: Cast, person: User):
        browser = sign_in(person)
        held = {one.holding.table: one.count for one in browser.get("/held/").context["held"]}
        assert held["telemetry.Job"] == held["principals.AgentSession"] == held["webhooks.Webhook"] == 1
        whole = json.loads(b"".join(browser.get("/held/download.json").streaming_content))
        assert {table["table"]: len(table["rows"]) for table in whole["tables"] if table["rows"]} == held
        one = json.loads(b"".join(browser.get("/held/download.json?table=telemetry-job").streaming_content))
        assert [table["table"] for table in one["tables"]] == ["telemetry.Job"]
        assert browser.get("/held/download.json?table=x").status_code == 404

    def test_others_see_nothing_of_it(self, cast: Cast, person: User):
        for who in (cast.outsider, cast.staff):
            text = b"".join(sign_in(who).get("/held/download.json").streaming_content).decode()
            assert f"/home/{WHO}" not in text and f"{WHO}@" not in text


class TestErase:
    def test_a_dry_run_changes_nothing(self, cast: Cast, person: User):
        before = everything()
        said = erase()
        assert "principals.AgentSession: 1 would be deleted" in said and "Nothing was changed" in said
        assert everything() == before

    def test_accounting_stays_under_a_pseudonym_and_the_rest_goes(self, cast: Cast, person: User):
        erase("--yes")
        name = f"erased-{person.pk}"
        job = Job.objects.get()
        assert (job.cpus, job.cluster_user.login, job.work_dir) == (7, name, "")
        person.refresh_from_db()
        assert (person.username, person.email, person.is_active) == (name, "", False)
        assert not AgentSession.objects.exists() and not ActivityMinute.objects.exists()
        agent = Agent.objects.get(owner=person)
        assert agent.status == "retired" and not agent.tokens.filter(revoked_at=None).exists()

    def test_their_name_is_left_where_the_docs_say_and_nowhere_else(self, cast: Cast, person: User):
        erase("--yes")
        left = {label for label, row in everything() if any(WHO in str(value) for value in row.values())}
        assert left == {"core.AuditEvent", "core.LiveEvent", "principals.Notice"}
        # Of the audit trail its fixed columns, of notices those that others were told.
        assert not any(WHO in str(event.payload) for event in AuditEvent.objects.all())
        assert not Notice.objects.filter(person=person).exists()

    def test_the_audit_chain_still_verifies(self, cast: Cast, person: User):
        audit.seal_all()
        erase("--yes")
        assert list(audit.verify({})) == []
        assert AuditEvent.objects.filter(verb="person.erase").get().object_label == f"erased-{person.pk}"

    def test_nobody_else_loses_anything(self, cast: Cast, person: User):
        def of_others() -> list[str]:
            kept = ("principals.User", "principals.Agent", "principals.AgentToken", "principals.ClusterUser",
                    "principals.LabMembership", "webhooks.Webhook", "principals.NoticePreference")  # fmt: skip
            mine = {person.pk}
            return [
                f"{label} {row}" for label, row in everything()
                if label in kept and not mine & {row.get("user_id"), row.get("owner_id"), row["id"]}
                and row.get("agent_id") not in agents and row.get("requested_by_id") != person.pk
            ]  # fmt: skip

        agents = set(Agent.objects.filter(owner=person).values_list("pk", flat=True))
        factories.make_token(cast.agent)
        make_webhook(cast.pi)
        before = of_others()
        erase("--yes")
        assert of_others() == before and len(before) > 15

    def test_what_would_come_back_is_refused(self, cast: Cast, person: User):
        login = ClusterUser.objects.get(user=person)
        job = make_job(login, cast.lab, submit=DAY_0)
        with pytest.raises(CommandError, match="wait or run"):
            erase("--yes")
        job.delete()
        LabMembership.objects.filter(lab=cast.lab, role="pi").delete()
        LabMembership.objects.filter(user=person).update(role="pi")
        with pytest.raises(CommandError, match="only PI"):
            erase("--yes")
        LabMembership.objects.filter(user=person).update(role="member")
        erase("--yes")
        with pytest.raises(CommandError, match="There is no person"):
            erase("--yes")

    def test_it_says_why_or_does_nothing(self, cast: Cast, person: User):
        with pytest.raises(CommandError, match="--purpose"):
            call_command("subject", "erase", WHO, "--yes", stdout=StringIO())
        assert services.pseudonym(person) not in User.objects.values_list("username", flat=True)
