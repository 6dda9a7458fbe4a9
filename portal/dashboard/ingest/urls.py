"""Addresses of the ingest pages."""

from django.urls import path

from portal.dashboard.ingest import batch, health

urlpatterns = [
    path("ingest/", health.ingest_health, name="ingest-health"),
    path("ingest/expected/", health.expect_source, name="ingest-expect"),
    path("ingest/batches/<uuid:public_id>/", batch.ingest_batch, name="ingest-batch"),
    path("ingest/batches/<uuid:public_id>/retry/", batch.retry_ingest_batch, name="ingest-retry"),
]
