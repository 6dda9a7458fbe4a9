"""Addresses of the reports."""

from django.urls import path

from portal.reports import views

urlpatterns = [
    path("reports/", views.report_list, name="reports"),
    path("reports/draft/", views.draft, name="report-draft"),
    path("reports/<slug:cluster>/<str:month>/", views.report, name="report"),
    path("reports/<slug:cluster>/<str:month>/publish/", views.publish, name="report-publish"),
]
