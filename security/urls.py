"""Addresses of `security`."""

from django.urls import path

from security import views

urlpatterns = [
    path("incidents/", views.incidents, name="incidents"),
    path("incidents/<int:pk>/", views.incident, name="incident"),
]
