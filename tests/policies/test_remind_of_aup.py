"""Owners are told of a version that waits for them: once a stage, and no more once they accepted."""

from datetime import timedelta

from policies import services as policy_services
from policies.engine.aup import write_aup
from policies.engine.packs import read_pack
from policies.tasks import remind_of_aup
from portal.core import clock
from principals.actors import SYSTEM_ACTOR
from principals.models import Notice
from tests import factories
from tests.conftest import Cast


def test_an_owner_is_told_once_a_stage_until_they_accept(cast: Cast) -> None:
    source = write_aup(read_pack("cautious")).replace('"draft"', '"2026-12"', 1).replace("2027-01-01", "2026-01-01")
    version = policy_services.publish_aup(actor=SYSTEM_ACTOR, source=source)
    policy_services.accept_aup_for_mine(actor=factories.actor_of(cast.outsider), version="2026-12")
    told = Notice.objects.filter(kind__in=["aup_due", "hold_placed"], person=cast.colleague).order_by("pk")
    for days_left, number in ((14, 1), (13, 1), (7, 2), (6, 2), (1, 3), (0, 4), (-30, 4)):
        with clock.at(version.holds_from - timedelta(days=days_left)):
            remind_of_aup()
            assert remind_of_aup() == 0
        assert told.count() == number
    titles = list(told.values_list("title", flat=True))
    assert all("2026-12" in title and cast.agent.name in title for title in titles)
    assert titles[0].startswith("AUP 2026-12 is new") and titles[-1].startswith("Held until you accept")
    assert set(told.values_list("url", flat=True)) == {"/aup/"}
    assert list(told.values_list("kind", "is_digest")) == [("aup_due", True)] * 3 + [("hold_placed", False)]
    assert set(Notice.objects.filter(kind="aup_due").values_list("person", flat=True)) == {cast.colleague.pk}


def test_whoever_accepted_is_not_told_again(cast: Cast) -> None:
    remind_of_aup()
    policy_services.current_aup()
    assert remind_of_aup() == 2
    for agent in (cast.agent, cast.foreign_agent):
        policy_services.accept_aup(actor=factories.actor_of(agent.owner), agent=agent, version="2026-06")
    with clock.at(clock.now() + timedelta(days=1)):
        assert remind_of_aup() == 0
