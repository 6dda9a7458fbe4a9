"""Addresses of `memory`."""

from django.urls import path

from memory import views

urlpatterns = [
    path("lessons/", views.lessons, name="lessons"),
    path("lessons/record/", views.record, name="lesson-record"),
    path("lessons/<str:public_id>/", views.lesson, name="lesson"),
]
