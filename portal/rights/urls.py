"""Addresses of a person's rights."""

from django.urls import path

from portal.rights import views

urlpatterns = [
    path("held/", views.held, name="held-about-me"),
    path("held/download.json", views.download, name="held-download"),
    path("held/appeal/", views.appeal, name="held-appeal"),
    path("appeals/", views.appeals, name="appeals"),
    path("appeals/<int:appeal>/answer/", views.answer, name="appeal-answer"),
]
