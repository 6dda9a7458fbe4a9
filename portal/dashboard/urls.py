"""Addresses of the frame itself."""

from django.urls import include, path

from portal.dashboard import dev, search, views

urlpatterns = [
    path("", search.home, name="home"),
    path("search/", search.search, name="search"),
    path("", include("portal.dashboard.agents.urls")),
    path("", include("portal.dashboard.jobs.urls")),
    path("", include("portal.dashboard.ingest.urls")),
    path("", include("portal.dashboard.audit.urls")),
    path("", include("portal.dashboard.overview.urls")),
    path("", include("portal.dashboard.notices.urls")),
    path("theme/", views.set_theme, name="theme"),
    path("dev/components/", dev.components, name="dev-components"),
    path("dev/components/figure/<slug:name>/", dev.figure, name="dev-figure"),
]
