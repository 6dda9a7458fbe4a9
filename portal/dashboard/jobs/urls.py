"""Addresses of the jobs' pages."""

from django.urls import path

from portal.dashboard.jobs import detail, listing, live

urlpatterns = [
    path("jobs/", listing.jobs, name="jobs"),
    path("jobs/live/", live.live_jobs, name="live-jobs"),
    path("jobs/<int:pk>/", detail.job, name="job"),
    path("jobs/<str:cluster>/<int:raw_id>/", detail.job_by_id, name="job-by-id"),
]
