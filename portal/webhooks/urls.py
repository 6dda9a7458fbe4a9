"""Addresses of the webhooks' pages."""

from django.urls import path

from portal.webhooks import views

urlpatterns = [
    path("webhooks/", views.webhook_list, name="webhooks"),
    path("webhooks/new/", views.new_webhook, name="webhook-new"),
    path("webhooks/<slug:webhook>/", views.webhook, name="webhook"),
    path("webhooks/<slug:webhook>/change/", views.change, name="webhook-change"),
    path("webhooks/<slug:webhook>/switch/", views.switch, name="webhook-switch"),
    path("webhooks/<slug:webhook>/test/", views.test, name="webhook-test"),
    path("webhooks/<slug:webhook>/roll/", views.roll, name="webhook-roll"),
    path("webhooks/<slug:webhook>/delete/", views.delete, name="webhook-delete"),
    path("webhooks/<slug:webhook>/dead/<slug:delivery>/again/", views.again, name="webhook-again"),
    path("webhooks/<slug:webhook>/dead/<slug:delivery>/drop/", views.drop, name="webhook-drop"),
]
