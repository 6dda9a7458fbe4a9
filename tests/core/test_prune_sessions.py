"""Browsers' sessions past their end are deleted: whoever starts a sign-in and goes away leaves one."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session

from portal.core import clock, tasks

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


def test_those_past_their_end_go_and_no_other() -> None:
    for key, hours in (("over", -1), ("open", 1)):
        Session.objects.create(session_key=key, session_data="", expire_date=clock.now() + timedelta(hours=hours))
    assert tasks.prune()["sessions"] == 1
    assert list(Session.objects.values_list("session_key", flat=True)) == ["open"]
