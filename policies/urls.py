"""Addresses of `policies`."""

from django.urls import path

from policies.views import aup, extensions, trials

urlpatterns = [
    path("aup/", aup.aup, name="aup"),
    path("trials/", trials.trials, name="trials"),
    path("trials/requests/", trials.trial_requests, name="trial-requests"),
    path("trials/limits/", trials.trial_limits, name="trial-limits"),
    path("trials/<str:trial>/cancel/", trials.cancel_trial, name="trial-cancel"),
    path("extensions/", extensions.extensions, name="extensions"),
    path("extensions/submit/", extensions.submit_extension, name="extension-submit"),
    path("extensions/<int:pk>/", extensions.extension, name="extension"),
    path("extensions/<int:pk>/decide/", extensions.decide_extension, name="extension-decide"),
]
