"""Addresses of the frame itself."""

from django.urls import include, path

from portal.dashboard import dev, views

urlpatterns = [
    path("", include("portal.dashboard.agents.urls")),
    path("", include("portal.dashboard.overview.urls")),
    path("theme/", views.set_theme, name="theme"),
    path("dev/components/", dev.components, name="dev-components"),
    path("dev/components/figure/<slug:name>/", dev.figure, name="dev-figure"),
]
