"""Pages of the policy: writing a version in two steps, what changed, accepting, the export."""

import pytest

from policies import services as policy_services
from policies.engine.packs import PACKS, read_pack
from policies.models import AupAcceptance, AupDraft, AupVersion
from portal.core.errors import Conflict
from portal.core.models import AuditEvent
from tests import factories
from tests.conftest import Cast, sign_in


@pytest.fixture
def draft(cast: Cast) -> AupDraft:
    return policy_services.start_aup_draft(actor=factories.actor_of(cast.staff), pack="cautious")


def _form(draft: AupDraft, **changed: str) -> dict[str, str]:
    from policies.forms import DraftForm

    initial = DraftForm.of(draft).initial
    form = {name: str(initial[name]) for name in ("title", "effective", "grace_days", "text", "clauses")}
    return form | {"version": "2027-01", "base": draft.revision} | changed


def _digest(page: str) -> str:
    return page.partition('name="digest" value="')[2].partition('"')[0]


def test_staff_write_a_version_from_a_pack_look_at_it_and_publish_it(cast: Cast) -> None:
    client = sign_in(cast.staff)
    assert all(name in client.get("/aup/drafts/new/").content.decode() for name in PACKS)
    address = client.post("/aup/drafts/new/", {"pack": "cautious"})["Location"]
    found = AupDraft.objects.get()
    assert "cannot be published" in client.get(address).content.decode()
    assert client.post(address, _form(found, text="# Be *kind*\n<script>x</script>")).status_code == 302
    page = client.get(address).content.decode()
    assert "<h3>Be <em>kind</em></h3>" in page and "<script>x" not in page
    assert "No long unattended runs." in page
    assert AupVersion.objects.count() == 1
    assert client.post(f"{address}publish/", {"digest": _digest(page)}).status_code == 302
    assert policy_services.current_aup().version == "2027-01"
    assert policy_services.current_aup().policy.clauses == read_pack("cautious").clauses
    assert not AupDraft.objects.exists()


def test_a_faulty_draft_says_what_is_wrong_and_keeps_what_was_typed(cast: Cast, draft: AupDraft) -> None:
    typed = _form(draft)["clauses"].replace('modality = "forbid"', 'modality = "wish"', 1)
    answer = sign_in(cast.staff).post(draft.get_absolute_url(), _form(draft, clauses=typed))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "It is one of forbid, require, limit, advise, inform." in page
    assert "modality = &quot;wish&quot;" in page
    draft.refresh_from_db()
    assert draft.policy == read_pack("cautious")


def test_what_somebody_changed_meanwhile_is_not_published(cast: Cast, draft: AupDraft) -> None:
    client = sign_in(cast.staff)
    client.post(draft.get_absolute_url(), _form(draft))
    seen = _digest(client.get(draft.get_absolute_url()).content.decode())
    draft.refresh_from_db()
    client.post(draft.get_absolute_url(), _form(draft, grace_days="3"))
    assert client.post(f"{draft.get_absolute_url()}publish/", {"digest": seen}).status_code == 409
    assert AupVersion.objects.count() == 1


def test_who_saves_on_an_older_revision_is_refused_and_loses_nothing(cast: Cast, draft: AupDraft) -> None:
    client, address = sign_in(cast.staff), draft.get_absolute_url()
    mine = _form(draft, text="Mine is *kept*.")
    assert client.post(address, _form(draft, text="Theirs stands.")).status_code == 302
    answer = client.post(address, mine)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Somebody saved this draft after you opened it" in page
    assert "Mine is *kept*.</textarea>" in page and "<del>Theirs stands.</del>" in page
    draft.refresh_from_db()
    assert draft.policy.text == "Theirs stands."
    assert f'name="base" value="{draft.revision}"' in page
    assert client.post(address, mine | {"base": draft.revision}).status_code == 302
    draft.refresh_from_db()
    assert draft.policy.text == "Mine is *kept*."


def test_comments_in_clauses_stay_as_they_were_typed(cast: Cast, draft: AupDraft) -> None:
    client, address = sign_in(cast.staff), draft.get_absolute_url()
    typed = "# Asked of the board.\r\n" + _form(draft)["clauses"]
    assert client.post(address, _form(draft, text='Two lines,\r\n"quoted".', clauses=typed)).status_code == 302
    draft.refresh_from_db()
    assert _form(draft)["clauses"] == typed.replace("\r\n", "\n")
    assert "# Asked of the board.\n[[clause]]" in client.get(address).content.decode()


def test_who_opened_it_before_and_typed_a_fault_is_still_told_afterwards(cast: Cast, draft: AupDraft) -> None:
    client, address, old = sign_in(cast.staff), draft.get_absolute_url(), draft.revision
    client.post(address, _form(draft, text="Theirs."))
    page = client.post(address, _form(draft, title="")).content.decode()
    assert f'name="base" value="{old}"' in page
    assert client.post(address, {**_form(draft), "base": ""}).status_code == 409


def test_what_somebody_saved_meanwhile_is_not_dropped_and_nothing_is_dropped_twice(cast: Cast, draft: AupDraft) -> None:
    client, drop, old = sign_in(cast.staff), f"{draft.get_absolute_url()}drop/", draft.revision
    client.post(draft.get_absolute_url(), _form(draft, text="Theirs stands."))
    assert client.post(drop, {"base": old}).status_code == 409
    page = client.get(draft.get_absolute_url()).content.decode()
    draft.refresh_from_db()
    assert page.count(f'name="base" value="{draft.revision}"') == 2
    stale = AupDraft.objects.get()
    assert client.post(drop, {"base": draft.revision}).status_code == 302
    with pytest.raises(Conflict):
        policy_services.drop_aup_draft(actor=factories.actor_of(cast.staff), draft=stale, base=stale.revision)
    assert AuditEvent.objects.filter(verb="aup.drop_draft").count() == 1


def test_a_version_shows_what_changed(cast: Cast, draft: AupDraft) -> None:
    client = sign_in(cast.staff)
    client.post(draft.get_absolute_url(), _form(draft))
    page = client.get(draft.get_absolute_url()).content.decode()
    client.post(f"{draft.get_absolute_url()}publish/", {"digest": _digest(page)})
    page = sign_in(cast.colleague).get("/aup/versions/2027-01/").content.decode()
    assert "What changed since 2026-06" in page
    assert "<ins>No long unattended runs.</ins>" in page
    page = sign_in(cast.colleague).get("/aup/versions/2026-06/?against=2027-01").content.decode()
    assert "<del>No long unattended runs.</del>" in page


@pytest.mark.parametrize("who", ["pi", "infosec", "auditor"])
def test_nobody_else_writes(cast: Cast, draft: AupDraft, who: str) -> None:
    client = sign_in(getattr(cast, who))
    assert client.get("/aup/drafts/new/").status_code == 403
    assert client.get(draft.get_absolute_url()).status_code == 403
    assert client.post(f"{draft.get_absolute_url()}publish/").status_code == 403
    assert client.post(f"{draft.get_absolute_url()}drop/").status_code == 403


def test_one_click_accepts_for_all_of_ones_agents(cast: Cast) -> None:
    second = factories.make_agent(cast.lab, cast.colleague, "okafor-second")
    client = sign_in(cast.colleague)
    page = client.get("/aup/").content.decode()
    assert "accept it for 2 agents" in page
    client.post("/aup/accept/", {"version": "2026-06"})
    accepted = set(AupAcceptance.objects.values_list("agent__name", flat=True))
    assert accepted == {cast.agent.name, second.name}
    assert "You accepted this version" in client.get("/aup/").content.decode()


def test_an_outdated_page_accepts_nothing(cast: Cast) -> None:
    policy_services.current_aup()
    assert sign_in(cast.colleague).post("/aup/accept/", {"version": "2025-01"}).status_code == 409
    assert not AupAcceptance.objects.exists()


def test_the_pi_sees_who_has_not_and_the_outsider_sees_nobody_of_it(cast: Cast) -> None:
    page = sign_in(cast.pi).get("/aup/").content.decode()
    assert "has not:" in page and cast.agent.name in page
    assert cast.agent.name not in sign_in(cast.outsider).get("/aup/").content.decode()


def test_the_export_is_scoped_and_noted(cast: Cast) -> None:
    for agent in (cast.agent, cast.foreign_agent):
        policy_services.accept_aup(actor=factories.actor_of(agent.owner), agent=agent, version="2026-06")
    answer = sign_in(cast.pi).get("/aup/acceptances.csv")
    lines = answer.content.decode().splitlines()
    assert answer["Content-Type"].startswith("text/csv")
    assert lines[0] == "version,digest,lab,agent,owner,accepted_by,accepted_at,how"
    assert [line.split(",")[3] for line in lines[1:]] == [cast.agent.name]
    assert len(sign_in(cast.auditor).get("/aup/acceptances.csv").content.decode().splitlines()) == 3
    assert sign_in(cast.colleague).get("/aup/acceptances.csv").status_code == 403
    noted = AuditEvent.objects.filter(verb="aup.export").order_by("pk")
    assert [(each.actor_label, each.payload["after"]["rows"]) for each in noted] == [("pi", 1), ("auditor", 2)]


def test_in_its_grace_an_agents_page_offers_to_accept(cast: Cast) -> None:
    page = sign_in(cast.colleague).get(cast.agent.get_absolute_url()).content.decode()
    assert "is not accepted for it yet" in page
    policy_services.accept_aup(actor=factories.actor_of(cast.colleague), agent=cast.agent, version="2026-06")
    page = sign_in(cast.colleague).get(cast.agent.get_absolute_url()).content.decode()
    assert "is not accepted for it yet" not in page
