"""`gatehouse check-data` against a portal: statuses that a hook can go by."""

import os
from dataclasses import replace

import pytest

from policies import services as policy_services
from policies.engine.aup import write_aup
from policies.engine.packs import read_pack
from portal.cli.main import main
from principals.actors import SYSTEM_ACTOR
from principals.permissions import actor_for_user
from tests import factories

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def secure(live_server, cast, monkeypatch, tmp_path):
    """A folder whose data only the site's own models may see."""
    token = factories.make_token(cast.agent)
    folder = os.path.realpath(tmp_path)
    owner, version = actor_for_user(cast.agent.owner), policy_services.current_aup().version
    # It holds until the grace of the next one ends.
    policy_services.accept_aup(actor=owner, agent=cast.agent, version=version)
    aup = replace(read_pack("compute-only"), version="2026-12", effective="2026-01-01")
    source = write_aup(aup).replace("/secure/dbgap", folder)
    assert folder in source
    policy_services.publish_aup(actor=SYSTEM_ACTOR, source=source)
    monkeypatch.setenv("GATEHOUSE_URL", live_server.url)
    monkeypatch.setenv("GATEHOUSE_TOKEN", token)
    return tmp_path


def test_its_status_says_whether_and_links_are_followed(secure, tmp_path_factory, capsys):
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(secure)
    for path in (secure / "x.bam", link / "x.bam"):
        assert main(["check-data", str(path), "--provider", "anthropic"]) == 3
        said = capsys.readouterr()
        assert "[site.nih_controlled_access]" in said.err and said.out == ""
    assert main(["check-data", str(link), "--provider", "site"]) == 0
    assert main(["check-data", "/usr/bin", "--provider", "anthropic"]) == 0
    assert capsys.readouterr().err == ""


def test_who_cannot_say_says_neither(secure, monkeypatch, capsys):
    monkeypatch.setenv("GATEHOUSE_TOKEN", "gth_none")
    assert main(["check-data", "/usr/bin"]) == 1
    monkeypatch.setenv("GATEHOUSE_URL", "http://127.0.0.1:9")
    assert main(["check-data", "/usr/bin"]) == 2
    assert capsys.readouterr().out == ""
