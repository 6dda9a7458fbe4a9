"""Addresses of `policies`."""

from django.urls import path

from policies import views

urlpatterns = [
    path("aup/", views.aup, name="aup"),
]
