"""`gatehouse receipt` against a portal: a word for sbatch(1), or nothing but a reason."""

import json

import pytest

from portal.cli.main import main
from telemetry.engine.receipts import receipts_in
from telemetry.models import JobReceipt
from tests import factories

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def portal(live_server, monkeypatch):
    """A portal that is asked with the token of the lab's agent."""
    monkeypatch.setenv("GATEHOUSE_URL", live_server.url)
    return live_server


def test_it_prints_the_receipt_alone(portal, cast, monkeypatch, capsys):
    monkeypatch.setenv("GATEHOUSE_TOKEN", factories.make_token(cast.agent))
    assert main(["receipt"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{JobReceipt.objects.get(agent=cast.agent).public_id}\n" and said.err == ""
    assert receipts_in(said.out)
    assert main(["receipt", "--cluster", "aster", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["receipt"] == said.out.strip()


def test_what_is_refused_leaves_the_comment_empty(portal, cast, monkeypatch, capsys):
    monkeypatch.setenv("GATEHOUSE_TOKEN", factories.make_token(cast.agent))
    assert main(["receipt", "--cluster", "nowhere"]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.splitlines() == [
        "The lab has no account there. [cluster_unknown]", "Name one of aster.",
    ]  # fmt: skip
    monkeypatch.setenv("GATEHOUSE_URL", "http://127.0.0.1:1")
    assert main(["receipt"]) == 2
    assert capsys.readouterr().out == ""
