"""Addresses of the reports. A period is a month (2026-07), a week (2026-W28) or days (2026-07-07--2026-08-01)."""

from django.urls import path

from portal.reports import views

urlpatterns = [
    path("reports/", views.report_list, name="reports"),
    path("reports/draft/", views.draft, name="report-draft"),
    path("reports/<slug:cluster>/<str:period>/", views.report, name="report"),
    path("reports/<slug:cluster>/<str:period>/approve/", views.approve, name="report-approve"),
    path("reports/<slug:cluster>/<str:period>/publish/", views.publish, name="report-publish"),
    path("reports/<slug:cluster>/<str:period>/withdraw/", views.withdraw, name="report-withdraw"),
]
