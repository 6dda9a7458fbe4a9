"""A report says by which evidence jobs were attributed, and where evidence disagreed."""

import pytest

from principals.actors import SYSTEM_ACTOR
from telemetry.engine import attribution
from telemetry.figures import Readings, measure
from telemetry.figures.attribution import METHODS
from telemetry.models import Job
from telemetry.selectors import Period, Scope
from telemetry.selectors.methods import newest_methods
from tests import factories
from tests.telemetry.job_rows import DAY_0, make_job

pytestmark = pytest.mark.django_db


def test_every_method_of_attribution_has_words() -> None:
    assert METHODS.keys() == attribution.CONFIDENCE.keys()


def test_a_receipt_of_somebody_else_attributes_nothing_and_is_no_disagreement() -> None:
    cluster, lab = factories.make_cluster("aster"), factories.make_lab("okafor")
    user = factories.make_cluster_user(cluster, factories.make_user())
    for number, method in enumerate(("receipt", "receipt", "receipt_foreign", "receipt_foreign_alone", "none")):
        make_job(user, lab, submit=DAY_0 + number)
        Job.objects.filter(submit=Job.objects.latest("pk").submit).update(actor_method=method)
    scope = Scope(actor=SYSTEM_ACTOR, cluster=cluster, period=Period.month(2026, 7))
    found = measure("attribution-methods", Readings(scope))
    assert found is not None
    assert (found.value, found.unknown_share) == (0.6, 0.4)
    assert "33.3%" in found.note


def test_submissions_are_counted_by_evidence() -> None:
    cluster, lab = factories.make_cluster("aster"), factories.make_lab("okafor")
    user = factories.make_cluster_user(cluster, factories.make_user())
    for number, method in enumerate(("environment_label", "observed", "observed", "declared_session", "none", "none",
                                     "declared_session_with_interactive", "interactive_session")):  # fmt: skip
        make_job(user, lab, submit=DAY_0 + number)
        Job.objects.filter(submit=Job.objects.latest("pk").submit).update(actor_method=method)
    make_job(user, lab, submit=DAY_0 + 90 * 86_400)  # in another month

    found = measure(
        "attribution-methods", Readings(Scope(actor=SYSTEM_ACTOR, cluster=cluster, period=Period.month(2026, 7)))
    )

    assert found is not None
    rows = {row.key: row.values for row in found.rows if row.values[0]}
    assert rows == {
        "environment_label": (1, 1 / 8), "observed": (2, 2 / 8), "declared_session": (1, 1 / 8), "none": (2, 2 / 8),
        "declared_session_with_interactive": (1, 1 / 8), "interactive_session": (1, 1 / 8),
    }  # fmt: skip
    assert (found.value, found.unknown_share) == (0.75, 0.25)
    assert "16.7%" in found.note
    assert sum(newest_methods(SYSTEM_ACTOR, cluster).values()) == 9
