"""Addresses of `policies`."""

from django.urls import path

from policies.views import aup, aup_drafts, extensions, trials

urlpatterns = [
    path("aup/", aup.aup, name="aup"),
    path("aup/accept/", aup.accept, name="aup-accept"),
    path("aup/acceptances.csv", aup.acceptances, name="aup-acceptances"),
    path("aup/compliance/", aup.compliance, name="aup-compliance"),
    path(".well-known/agent-policy.json", aup.agent_policy, name="agent-policy"),
    path("aup/versions/<str:version>/", aup.aup_version, name="aup-version"),
    path("aup/drafts/new/", aup_drafts.start, name="aup-draft-start"),
    path("aup/drafts/<int:pk>/", aup_drafts.draft, name="aup-draft"),
    path("aup/drafts/<int:pk>/publish/", aup_drafts.publish, name="aup-draft-publish"),
    path("aup/drafts/<int:pk>/drop/", aup_drafts.drop, name="aup-draft-drop"),
    path("trials/", trials.trials, name="trials"),
    path("trials/requests/", trials.trial_requests, name="trial-requests"),
    path("trials/limits/", trials.trial_limits, name="trial-limits"),
    path("trials/<str:trial>/cancel/", trials.cancel_trial, name="trial-cancel"),
    path("extensions/", extensions.extensions, name="extensions"),
    path("extensions/submit/", extensions.submit_extension, name="extension-submit"),
    path("extensions/<int:pk>/", extensions.extension, name="extension"),
    path("extensions/<int:pk>/decide/", extensions.decide_extension, name="extension-decide"),
]
