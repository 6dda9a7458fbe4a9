"""`gatehouse me` against a portal: what it prints, what it refuses, and with which exit status."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from portal.cli.main import main
from principals import services as principal_services
from principals.models import Hold
from tests import factories

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def portal(live_server, monkeypatch, tmp_path):
    """The address of a portal; no token is known yet."""
    monkeypatch.setenv("GATEHOUSE_URL", live_server.url)
    monkeypatch.setenv("GATEHOUSE_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.delenv("GATEHOUSE_TOKEN", raising=False)
    return live_server


def test_it_says_who_the_token_is(portal, cast, monkeypatch, capsys):
    monkeypatch.setenv("GATEHOUSE_TOKEN", factories.make_token(cast.agent))
    assert main(["me"]) == 0
    said = capsys.readouterr()
    assert "okafor-docking (claude-code, supervised) acts for colleague of okafor." in said.out
    assert "jobs:read" in said.out
    assert "Not checked in: no session of this agent is open." in said.out
    assert said.err == ""


def test_it_gives_the_answer_as_it_is(portal, cast, monkeypatch, capsys):
    monkeypatch.setenv("GATEHOUSE_TOKEN", factories.make_token(cast.agent))
    assert main(["me", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agent"] == "okafor-docking"


def test_it_reads_a_file_that_only_its_owner_may_read(portal, cast, tmp_path, capsys):
    file = tmp_path / "token"
    file.write_text(factories.make_token(cast.agent) + "\n")
    file.chmod(0o600)
    assert main(["me"]) == 0
    assert "okafor-docking" in capsys.readouterr().out


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_it_refuses_a_file_that_others_can_read(portal, cast, tmp_path, capsys, mode):
    file = tmp_path / "token"
    file.write_text(factories.make_token(cast.agent))
    file.chmod(mode)
    assert main(["me"]) == 2
    assert capsys.readouterr().err == f"Others can read {file}. Run: chmod 600 {file}\n"


def test_it_says_where_a_token_belongs(portal, tmp_path, capsys):
    assert main(["me"]) == 2
    assert f"write it to {tmp_path / 'token'} (mode 0600)" in capsys.readouterr().err


def test_an_empty_or_broken_token_is_told_without_a_request(portal, monkeypatch, capsys):
    for text in (" ", "two\nlines", "ünï"):
        monkeypatch.setenv("GATEHOUSE_TOKEN", text)
        assert main(["me"]) == 2
        said = capsys.readouterr().err
        assert "token" in said
        assert "Traceback" not in said


def test_a_refusal_is_the_portal_s_words_code_and_remedy(portal, monkeypatch, capsys):
    monkeypatch.setenv("GATEHOUSE_TOKEN", "gha_nonsense")
    assert main(["me"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == "The token is not of our form. [token_malformed]"
    assert second == "Ask the person who answers for the agent for a new token."


def test_a_hold_is_told_with_its_code_and_remedy(portal, cast, monkeypatch, capsys):
    monkeypatch.setenv("GATEHOUSE_TOKEN", factories.make_token(cast.agent))
    principal_services.place_hold(
        actor=factories.actor_of(cast.staff), subject_kind="agent", subject_id=cast.agent.pk,
        kind=Hold.Kind.CONTAINMENT, code="contained", reason="Stopped by staff.", remedy="Write to the desk.",
    )  # fmt: skip
    assert main(["me"]) == 1
    assert capsys.readouterr().err == "Stopped by staff. [contained]\nWrite to the desk.\n"


def test_a_portal_that_is_away_is_told_in_one_line(portal, monkeypatch, capsys):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    monkeypatch.setenv("GATEHOUSE_URL", address)
    monkeypatch.setenv("GATEHOUSE_TOKEN", "gha_x")
    assert main(["me"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{address} does not answer: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("address", ["not an address", "file:///etc/passwd", "http://[::1", "ftp://portal"])
def test_an_address_that_is_none_is_told(monkeypatch, capsys, address):
    monkeypatch.setenv("GATEHOUSE_URL", address)
    monkeypatch.setenv("GATEHOUSE_TOKEN", "gha_x")
    assert main(["me"]) == 2
    assert "GATEHOUSE_URL" in capsys.readouterr().err


@pytest.fixture
def elsewhere():
    """A server that sends everybody on to itself, and the headers it was sent."""
    seen: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers["Authorization"]))
            self.send_response(302)
            self.send_header("Location", "/stolen")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()
        thread.join()


def test_a_token_follows_no_redirect(elsewhere, monkeypatch, capsys):
    url, seen = elsewhere
    monkeypatch.setenv("GATEHOUSE_URL", url)
    monkeypatch.setenv("GATEHOUSE_TOKEN", "gha_x")
    assert main(["me"]) == 1
    assert capsys.readouterr().err == "The portal answered HTTP 302. [http_302]\n"
    assert [path for path, _ in seen] == ["/api/v1/me"]


def test_a_page_instead_of_json_is_no_answer(portal, monkeypatch, capsys):
    monkeypatch.setattr("portal.cli.client._object", lambda response: json.loads("<!doctype html>"))
    monkeypatch.setenv("GATEHOUSE_TOKEN", "gha_x")
    assert main(["me"]) == 1
    assert "[http_401]" in capsys.readouterr().err
