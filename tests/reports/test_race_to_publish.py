"""Two at once: one approves, one publishes; the other is told."""

import pytest

from portal.reports import services
from portal.reports.models import Report, digest_of
from tests import factories
from tests.conftest import Cast
from tests.principals.test_race_for_one_row import both

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sql]


def test_a_draft_is_approved_and_published_once(cast: Cast) -> None:
    staff, digest = factories.actor_of(cast.staff), digest_of({})
    made = Report.objects.create(
        cluster=cast.cluster, first="2026-06-01", last="2026-06-30", version=1, content={}, digest=digest
    )
    for verb, new, refused in (
        (services.approve, "approved", "not_a_draft"), (services.publish, "published", "not_a_draft"),
    ):  # fmt: skip
        read = [Report.objects.get(pk=made.pk) for _ in range(2)]
        outcomes = both(
            lambda verb=verb, read=read: verb(actor=staff, report=read[0], digest=digest).state,
            lambda verb=verb, read=read: verb(actor=staff, report=read[1], digest=digest).state,
        )
        assert sorted(outcomes) == sorted([new, refused])
