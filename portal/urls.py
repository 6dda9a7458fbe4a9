"""Every address of the portal."""

from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from portal.api import api
from portal.core import health
from portal.realtime import views as realtime_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("favicon.ico", RedirectView.as_view(url=f"{settings.STATIC_URL}favicon.svg"), name="favicon"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("api/v1/", api.urls),
    path("live/events/", realtime_views.events, name="live-events"),
    path("", include("principals.urls")),
    path("", include("security.urls")),
    path("", include("policies.urls")),
    path("", include("memory.urls")),
    path("", include("portal.dashboard.urls")),
    path("", include("portal.reports.urls")),
    path("", include("portal.rights.urls")),
    path("", include("portal.webhooks.urls")),
]

handler403 = "portal.dashboard.errors.forbidden"
handler404 = "portal.dashboard.errors.not_found"
handler500 = "portal.dashboard.errors.failed"
