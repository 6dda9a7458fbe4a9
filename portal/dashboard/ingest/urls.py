"""Addresses of the ingest pages."""

from django.urls import path

from portal.dashboard.ingest import batch, health, login_nodes

urlpatterns = [
    path("ingest/", health.ingest_health, name="ingest-health"),
    path("login-nodes/", login_nodes.show_login_nodes, name="login-nodes"),
    path("ingest/expected/", health.expect_source, name="ingest-expect"),
    path("ingest/batches/<uuid:public_id>/", batch.ingest_batch, name="ingest-batch"),
    path("ingest/batches/<uuid:public_id>/retry/", batch.retry_ingest_batch, name="ingest-retry"),
]
