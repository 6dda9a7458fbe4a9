"""Health: alive, ready, and the figures, for those who may see them."""

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from portal.core import audit, health, live
from portal.core.actors import SYSTEM
from tests.conftest import Cast, sign_in


def test_a_process_that_lives_says_so_without_a_database() -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_a_migrated_portal_is_ready() -> None:
    response = Client().get("/readyz")
    assert response.status_code == 200
    assert response.json()["checks"] == {"database": "ok", "migrations": "ok", "disk": "ok"}


@pytest.mark.django_db
def test_a_portal_without_its_migrations_is_not_ready() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'core'")
    response = Client().get("/readyz")
    assert response.status_code == 503
    assert "migrate" in response.json()["checks"]["migrations"]


@pytest.mark.django_db
def test_a_portal_without_its_database_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise DatabaseError("no answer")

    monkeypatch.setattr(connection, "cursor", refuse)
    response = Client().get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["database"] == "no answer"


def _figures(text: str) -> dict[str, float]:
    return {sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples}


@pytest.mark.django_db
def test_the_figures_are_given_to_whoever_knows_the_token(settings: Settings) -> None:
    settings.METRICS_TOKEN = "a long metrics token"
    audit.record(actor=SYSTEM, verb="x", object_kind="x", object_id=1)
    audit.seal()
    audit.record(actor=SYSTEM, verb="x", object_kind="x", object_id=1)
    live.announce([live.News("x", ("lab:1",))])
    response = Client(headers={"authorization": "Bearer a long metrics token"}).get("/metrics")
    assert response.status_code == 200
    figures = _figures(response.text)
    assert figures["gatehouse_audit_seq"] == figures["gatehouse_audit_unsealed"] == 1
    assert (figures["gatehouse_live_seq"], figures["gatehouse_live_unnumbered"]) == (0, 1)


@pytest.mark.django_db
@pytest.mark.parametrize("sent", ["", "Bearer ", "Bearer wrong", "Bearer wröng"])
def test_others_are_refused(settings: Settings, sent: str) -> None:
    for token in ("", "a long metrics token"):
        settings.METRICS_TOKEN = token
        assert Client(headers={"authorization": sent} if sent else {}).get("/metrics").status_code == 403


def test_staff_who_are_signed_in_see_the_figures_and_others_do_not(cast: Cast) -> None:
    assert sign_in(cast.staff).get("/metrics").status_code == 200
    assert sign_in(cast.pi).get("/metrics").status_code == 403


def test_staff_who_are_signed_in_see_what_apps_add(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_sources", [])
    source = lambda: [GaugeMetricFamily("gatehouse_test", "A test", 7)]  # noqa: E731
    health.register_metrics(source)
    health.register_metrics(source)
    assert _figures(sign_in(cast.staff).get("/metrics").text)["gatehouse_test"] == 7
