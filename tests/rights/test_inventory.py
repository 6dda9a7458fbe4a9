"""Every table is in the inventory, or named as holding nothing about a person, with the reason."""

from pathlib import Path

import pytest
from django.apps import apps
from django.db.models import ForeignKey

from portal.rights.inventory import INVENTORY, OnErase
from portal.rights.not_keyed import LABELS, NOT_KEYED
from portal.rights.review import inventory_table
from principals.models import Agent, AgentSession, ClusterUser, User

ROOT = Path(__file__).resolve().parent.parent.parent
TABLES = {model._meta.label: model for model in apps.get_models(include_auto_created=True)}
LISTED = [holding.table for holding in INVENTORY]
# What leads to a person by one step or two.
KEYS = (User, ClusterUser, Agent, AgentSession)
# Tables with such a column that say nothing of that person, as their reason explains.
DESPITE_A_KEY: set[str] = set()


def test_every_table_is_listed_once_or_named_as_none():
    named = [*LISTED, *NOT_KEYED]
    assert sorted(named) == sorted(set(named))
    assert set(TABLES) - set(named) == set(), "add these to portal/rights/inventory.py, or to not_keyed.py"
    assert set(named) - set(TABLES) == set()


def test_a_table_with_a_persons_key_is_not_among_those_without():
    keyed = {
        label for label, model in TABLES.items()
        if any(isinstance(field, ForeignKey) and field.related_model in KEYS for field in model._meta.concrete_fields)
    }  # fmt: skip
    assert keyed & set(NOT_KEYED) == DESPITE_A_KEY


def test_each_says_what_for_and_how_long():
    assert [one.table for one in INVENTORY if not (one.purpose and one.kept and one.title)] == []
    assert [label for label, reason in NOT_KEYED.items() if not reason] == []


@pytest.mark.parametrize("holding", INVENTORY, ids=lambda holding: holding.slug)
def test_its_columns_are_there(holding):
    names = {field.attname for field in holding.model._meta.concrete_fields}
    assert set(holding.hidden) | set(holding.blank) <= names
    assert not (holding.blank and holding.on_erase is not OnErase.KEEP)


def test_nothing_that_opens_a_door_is_given_out():
    given = {(one.table, column) for one in INVENTORY for column in one.columns()}
    doors = {"password", "digest", "pepper", "salt", "secret", "token_secret", "fingerprint"}
    left = {(table, column) for table, column in given if column in doors}
    # Of public texts: a digest of what anybody may read.
    assert left == {("policies.AupAcceptance", "digest"), ("policies.AupPersonAcceptance", "digest"),
                    ("policies.ExtensionRelease", "digest"),
                    ("core.AuditEvent", "digest"), ("telemetry.IngestBatch", "digest")}  # fmt: skip


def test_labels_are_columns():
    for label, column in LABELS:
        assert column in {field.name for field in TABLES[label]._meta.concrete_fields}


def test_the_review_boards_list_is_made_of_it():
    text = (ROOT / "docs" / "review-board.md").read_text(encoding="utf-8")
    assert inventory_table() in text, "run: manage.py subject inventory, and paste it"
