"""Logging in by MUNGE, with real munged's: what a good credential opens, and the sentence for each that does not."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import signing

from portal.core import clock
from portal.core.errors import Conflict
from portal.core.models import AuditEvent
from principals import services as principal_services
from principals.engine.munge import Statement
from principals.models import Agent, AgentToken, ClusterUser, LabMembership, User
from tests import factories
from tests.conftest import Api, Cast
from tests.support.slurm import munge

pytestmark = pytest.mark.munge
URL, LOGIN, NOBODYS = "http://127.0.0.1:8000", "daemon", "games"


@contextlib.contextmanager
def _folders(*names: str) -> Iterator[dict[str, Path]]:
    """Folders that every user of this machine may enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="gatehouse-munge-") as whole:
        folders = {name: Path(whole) / name for name in names}
        for folder in (Path(whole), *folders.values()):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
        yield folders


@pytest.fixture(scope="module")
def sockets() -> Iterator[dict[str, Path]]:
    """Four munged's: this realm's, the same with its clock ten minutes before and behind, and another realm's."""
    key = os.urandom(128)
    with contextlib.ExitStack() as stack:
        folders = stack.enter_context(_folders("here", "early", "late", "elsewhere"))
        here = stack.enter_context(munge(folders["here"], key=key))
        early = stack.enter_context(munge(folders["early"], key=key, ahead_s=600))
        late = stack.enter_context(munge(folders["late"], key=key, ahead_s=-600))
        elsewhere = stack.enter_context(munge(folders["elsewhere"]))
        yield {"here": here, "early": early, "late": late, "elsewhere": elsewhere}


@pytest.fixture
def site(cast: Cast, sockets: dict[str, Path], settings: Any) -> Cast:
    """The cast's site, which takes credentials of its cluster; the colleague's login name is one of this machine."""
    settings.MUNGE_CLUSTERS, settings.MUNGE_SOCKET = ["aster"], str(sockets["here"])
    ClusterUser.objects.create(cluster=cast.cluster, login=LOGIN, user=cast.colleague)
    return cast


def _credential(socket: Path, user: int | str = LOGIN, options: tuple[str, ...] = (), **said: Any) -> str:
    """A credential of a user of this machine, with a statement that is good but for what is said."""
    words = {"portal": URL, "host": "login01"} | said
    words.setdefault("nonce", Api("").get("/login/munge").json().get("nonce", "x"))
    payload = words.pop("payload", None) or Statement(**words).encode()
    command = ["munge", f"--socket={socket}", "--ttl=60", *options]
    made = subprocess.run(command, input=payload, user=user, capture_output=True, check=True)
    return made.stdout.decode().strip()


def _log_in(credential: str, **request: Any) -> Any:
    return Api("").post("/login/munge", {"credential": credential}, **request)


def _code(credential: str) -> str:
    """The code of a refusal; each has a sentence and a remedy."""
    body = _log_in(credential).json()
    assert body["detail"].endswith(".") and body["remedy"]
    assert not AgentToken.objects.exists()
    return str(body["code"])


def test_a_good_one_opens_for_twelve_hours_that_agent_and_address(site: Cast, sockets, standing_clock) -> None:  # type: ignore[no-untyped-def]
    body = _log_in(_credential(sockets["here"])).json()
    assert (body["agent"], body["acts_for"], body["host"]) == ("okafor-docking", "colleague", "login01")
    row = AgentToken.objects.get(key=body["key"])
    assert (row.how, row.host, row.networks) == ("munge", "login01", ["127.0.0.1/32"])
    assert row.expires == clock.now() + timedelta(hours=12)
    assert Api(body["token"]).get("/me").json()["acts_for"] == "colleague"
    elsewhere = Api(body["token"]).client.get("/api/v1/me", REMOTE_ADDR="192.0.2.9")
    assert elsewhere.json()["code"] == "address_not_allowed"
    event = AuditEvent.objects.get(verb="token.login")
    assert (event.actor_label, event.payload["after"]["how"]) == ("colleague", "munge")


def test_the_credential_is_kept_nowhere(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    credential = _credential(sockets["here"])
    secret = _log_in(credential).json()["token"].split(".")[1]
    kept = [*AgentToken.objects.values_list(), *AuditEvent.objects.values_list()]
    assert not any(credential in str(row) or secret in str(row) for row in kept)


def test_it_gives_the_scopes_that_were_asked_and_never_a_longer_life(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    body = _log_in(_credential(sockets["here"], scopes=("me:read", "token:rotate"))).json()
    assert body["scopes"] == ["me:read"]
    row = AgentToken.objects.get()
    with pytest.raises(Conflict) as caught:
        principal_services.rotate_agent_token(actor=factories.actor_of(site.colleague), token=row)
    assert caught.value.code == "token_of_login"


def test_one_is_good_for_once(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    credential = _credential(sockets["here"])
    assert _log_in(credential).status_code == 200
    body = _log_in(credential).json()
    assert (body["code"], body["detail"]) == (
        "munge_replayed",
        "The credential was used already: each is good for once.",
    )
    assert AgentToken.objects.count() == 1


def test_a_number_is_good_for_one_credential(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    nonce = Api("").get("/login/munge").json()["nonce"]
    assert _log_in(_credential(sockets["here"], nonce=nonce)).status_code == 200
    assert _log_in(_credential(sockets["here"], nonce=nonce)).json()["code"] == "nonce_used"


@pytest.mark.parametrize(
    ("clock_is", "code", "sentence"),
    [("early", "munge_rewound", "s from now"), ("late", "munge_expired", "s ago")],
)  # fmt: skip
def test_a_clock_that_is_ten_minutes_wrong(site: Cast, sockets, clock_is, code, sentence) -> None:  # type: ignore[no-untyped-def]
    body = _log_in(_credential(sockets[clock_is])).json()
    assert body["code"] == code and sentence in body["detail"] and "clocks" in body["remedy"]
    seconds = int(body["detail"].split(" s ")[0].split()[-1])
    assert 590 <= seconds <= 610


def test_another_realm_s(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    assert _code(_credential(sockets["elsewhere"])) == "munge_other_realm"


def test_one_that_somebody_else_should_read(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    assert _code(_credential(sockets["here"], options=("--restrict-uid=4242",))) == "munge_not_for_portal"


@pytest.mark.parametrize("text", ["", "x", "MUNGE:AwQFAADDGnFMaUWMtsmXSExShMCx:", "MUNGE:AwQF\nAADDGnFMaUWM:"])
def test_what_is_none(site: Cast, text: str) -> None:
    assert _code(text) == "munge_malformed"


def test_one_for_another_portal(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    body = _log_in(_credential(sockets["here"], portal="https://gatehouse.evil.example")).json()
    assert body["code"] == "munge_other_portal" and URL in body["remedy"]


def test_one_that_was_made_for_something_else(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    assert _code(_credential(sockets["here"], payload=b"slurm")) == "munge_statement"


def test_a_number_that_is_not_ours_or_too_old(site: Cast, sockets, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    assert _code(_credential(sockets["here"], nonce="abc:def")) == "nonce_unknown"
    monkeypatch.setattr("principals.services.tokens.munge.NONCE_LIFE_S", -1)
    assert _code(_credential(sockets["here"])) == "nonce_expired"
    assert signing.TimestampSigner().sign("x")  # of another salt: it opens nothing
    assert _code(_credential(sockets["here"], nonce=signing.TimestampSigner().sign("x"))) == "nonce_unknown"


def test_root(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    ClusterUser.objects.create(cluster=site.cluster, login="root", user=site.colleague)
    assert _code(_credential(sockets["here"], "root")) == "munge_root"


def test_a_uid_that_this_host_does_not_know(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    body = _log_in(_credential(sockets["here"], 4242)).json()
    assert (body["code"], "4242" in body["detail"]) == ("munge_uid_unknown", True)


def test_a_login_name_of_nobody(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    assert _code(_credential(sockets["here"], NOBODYS)) == "munge_person_unknown"
    ClusterUser.objects.create(cluster=site.cluster, login=NOBODYS, user=None)
    assert _code(_credential(sockets["here"], NOBODYS)) == "munge_person_unknown"


def test_a_login_name_of_two_people_is_nobody_s_whichever_cluster_is_named(site: Cast, sockets, settings) -> None:  # type: ignore[no-untyped-def]
    ClusterUser.objects.create(cluster=factories.make_cluster("birch"), login=LOGIN, user=site.pi)
    settings.MUNGE_CLUSTERS = ["aster", "birch"]
    assert _code(_credential(sockets["here"])) == "munge_ambiguous"
    assert _code(_credential(sockets["here"], cluster="cedar")) == "munge_cluster"
    for cluster in ("Aster", "birch"):  # else either could log in as the other
        assert _code(_credential(sockets["here"], cluster=cluster)) == "munge_ambiguous"
    settings.MUNGE_CLUSTERS = ["aster"]
    assert _log_in(_credential(sockets["here"], cluster="Aster")).json()["acts_for"] == "colleague"


def test_a_cluster_that_the_site_does_not_take_counts_for_nobody(site: Cast, sockets, settings) -> None:  # type: ignore[no-untyped-def]
    settings.MUNGE_CLUSTERS = ["birch"]
    assert _code(_credential(sockets["here"])) == "munge_person_unknown"


def test_a_person_who_left(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    User.objects.filter(pk=site.colleague.pk).update(is_active=False)
    assert _code(_credential(sockets["here"])) == "person_inactive"


def test_a_person_who_left_the_lab(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    LabMembership.objects.filter(user=site.colleague).delete()
    assert _code(_credential(sockets["here"])) == "owner_outside_lab"


@pytest.mark.parametrize("agent", ["marlowe-ingest", "okafor-none"])
def test_an_agent_of_somebody_else_is_no_other_than_none(site: Cast, sockets, agent: str) -> None:  # type: ignore[no-untyped-def]
    body = _log_in(_credential(sockets["here"], agent=agent)).json()
    assert (body["code"], body["detail"]) == ("agent_unknown", f"You answer for no agent that is called {agent}.")


def test_of_several_agents_one_is_named(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    factories.make_agent(site.lab, site.colleague, "okafor-second")
    assert _code(_credential(sockets["here"])) == "agent_ambiguous"
    assert _log_in(_credential(sockets["here"], agent="okafor-second")).json()["agent"] == "okafor-second"


def test_a_suspended_agent_says_why(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    principal_services.suspend_agent(actor=factories.actor_of(site.pi), agent=site.agent, reason="too many jobs")
    body = _log_in(_credential(sockets["here"])).json()
    assert body["code"] == "agent_suspended" and "too many jobs" in body["detail"]


def test_a_held_person_s_agent_says_why(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    principal_services.place_hold(
        actor=factories.actor_of(site.infosec), subject_kind="user", subject_id=site.colleague.pk, kind="containment",
        code="contained", reason="A key was exposed.", remedy="Rotate it.",
    )  # fmt: skip
    assert _code(_credential(sockets["here"])) == "contained"


def test_a_host_that_the_agent_is_not_registered_for(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    Agent.objects.filter(pk=site.agent.pk).update(hosts=["login03"])
    assert _code(_credential(sockets["here"])) == "host_not_allowed"
    assert _log_in(_credential(sockets["here"], host="login03.aster.example")).status_code == 200


def test_it_ends_with_the_agent_and_says_how_to_log_in_again(site: Cast, sockets) -> None:  # type: ignore[no-untyped-def]
    Agent.objects.filter(pk=site.agent.pk).update(expires=clock.now() + timedelta(hours=1))
    body = _log_in(_credential(sockets["here"])).json()
    assert AgentToken.objects.get().expires == Agent.objects.get(pk=site.agent.pk).expires
    AgentToken.objects.update(expires=clock.now() - timedelta(seconds=1))
    refused = Api(body["token"]).get("/me").json()
    assert (refused["code"], refused["remedy"]) == ("token_expired", "Run gatehouse login again.")


def test_where_it_is_off_it_says_so(cast: Cast) -> None:
    for answer in (Api("").get("/login/munge"), _log_in("MUNGE:x:")):
        assert (answer.status_code, answer.json()["code"]) == (409, "munge_off")
        assert "--device" in answer.json()["remedy"]


def test_where_munged_is_away_it_says_so(site: Cast, sockets, settings) -> None:  # type: ignore[no-untyped-def]
    credential = _credential(sockets["here"])
    settings.MUNGE_SOCKET = "/nowhere/munge.socket"
    assert _code(credential) == "munge_away"


def test_logins_from_one_address_are_counted(site: Cast, standing_clock: None, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("principals.api.LOGINS_PER_MINUTE", 2)
    assert [_log_in("x").status_code for _ in range(3)] == [422, 422, 429]
