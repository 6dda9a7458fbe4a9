from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("portal.dashboard.urls")),
]

handler403 = "portal.dashboard.errors.forbidden"
handler404 = "portal.dashboard.errors.not_found"
handler500 = "portal.dashboard.errors.failed"
