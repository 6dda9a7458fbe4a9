"""Addresses of what a person is told."""

from django.urls import path

from portal.dashboard.notices import page

urlpatterns = [
    path("notices/", page.notices, name="notices"),
    path("notices/count/", page.count_unread, name="notices-count"),
    path("notices/read/", page.read, name="notices-read"),
    path("notices/choose/", page.choose, name="notices-choose"),
]
