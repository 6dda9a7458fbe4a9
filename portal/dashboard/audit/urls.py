"""Address of the audit page."""

from django.urls import path

from portal.dashboard.audit import page

urlpatterns = [path("audit/", page.audit, name="audit")]
