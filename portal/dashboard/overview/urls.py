"""Addresses of the Overview."""

from django.urls import path

from portal.dashboard.overview import views

urlpatterns = [
    path("overview/", views.overview, name="overview"),
    path("overview/<slug:name>.<slug:kind>", views.data, name="overview-data"),
]
