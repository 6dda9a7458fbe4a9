"""An upgrade keeps versions published before there was a grace: they count from their publication on."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from policies.models import AupVersion

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sql]
AT = datetime(2026, 6, 2, tzinfo=UTC)


@pytest.fixture
def before(transactional_db: None) -> Iterator[None]:
    """The schema of before; that of today comes back also after a test that fails on the way."""
    call_command("migrate", "policies", "0001", verbosity=0)
    yield
    call_command("migrate", verbosity=0)


def test_versions_of_before_count_from_their_publication(before: None) -> None:
    old = MigrationExecutor(connection).loader.project_state(("policies", "0001_initial")).apps
    old.get_model("policies", "AupVersion").objects.create(
        version="2026-06", source="", digest="", published=AT, published_by="system"
    )
    call_command("migrate", verbosity=0)
    version = AupVersion.objects.get()
    assert (version.effective, version.holds_from) == (AT, AT)
