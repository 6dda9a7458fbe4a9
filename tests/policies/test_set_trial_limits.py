"""Staff set the limits of trials, of the facility and of labs."""

import pytest

from policies import selectors
from policies import services as policy_services
from policies.models import TrialPolicy
from portal.core.errors import Invalid, NotAllowed
from portal.core.models import AuditEvent
from tests import factories
from tests.conftest import Cast, sign_in
from tests.policies import worlds

FORM = {
    "max_minutes": 20, "max_gpus": 2, "max_nodes": 1, "person_trials": 10, "person_gpu_minutes": 100,
    "lab_trials": 40, "lab_gpu_minutes": 400, "valid_minutes": 30, "qos": "trial", "partition": "",
}  # fmt: skip


def test_they_hold_for_the_lab_and_say_what_was_before(cast: Cast) -> None:
    actor = factories.actor_of(cast.staff)
    policy_services.set_trial_limits(actor=actor, lab=None, limits={"max_minutes": 10})
    policy_services.set_trial_limits(actor=actor, lab=cast.lab, limits={"max_minutes": 30})
    policy_services.set_trial_limits(actor=actor, lab=cast.lab, limits={"max_minutes": 45})
    assert selectors.policy_for(cast.lab).max_minutes == 45
    assert selectors.policy_for(cast.other_lab).max_minutes == 10
    last = AuditEvent.objects.filter(verb="trial.set_limits").latest("pk")
    assert (last.payload["before"]["max_minutes"], last.payload["after"]["max_minutes"]) == (30, 45)  # type: ignore[index]


@pytest.mark.parametrize("who", ["pi", "colleague", "infosec", "auditor"])
def test_nobody_but_staff_sets_them(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed):
        policy_services.set_trial_limits(
            actor=factories.actor_of(getattr(cast, who)), lab=cast.lab, limits={"max_minutes": 60}
        )
    assert sign_in(getattr(cast, who)).post(f"/trials/limits/?lab={cast.lab.name}", FORM).status_code == 403
    assert not TrialPolicy.objects.exists()


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"max_minutes": 0}, "max_minutes"),
        ({"max_gpus": 65}, "max_gpus"),
        ({"person_trials": 50, "lab_trials": 40}, "person_trials"),
        ({"person_gpu_minutes": 500, "lab_gpu_minutes": 400}, "person_gpu_minutes"),
    ],
)
def test_limits_out_of_range_name_their_field(cast: Cast, limits: dict[str, int], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        policy_services.set_trial_limits(actor=factories.actor_of(cast.staff), lab=None, limits=limits)
    assert caught.value.extra["field"] == field
    assert not TrialPolicy.objects.exists()


def test_a_lab_goes_back_to_the_facilitys(cast: Cast) -> None:
    worlds.set_limits(cast.lab, max_minutes=60)
    actor = factories.actor_of(cast.staff)
    assert policy_services.drop_trial_limits(actor=actor, lab=cast.lab)
    assert not policy_services.drop_trial_limits(actor=actor, lab=cast.lab)
    assert selectors.policy_for(cast.lab).max_minutes == 15


def test_the_page_sets_them_and_keeps_what_was_typed_when_it_cannot(cast: Cast) -> None:
    browser = sign_in(cast.staff)
    assert browser.post("/trials/limits/?lab=okafor", FORM).status_code == 302
    assert selectors.policy_for(cast.lab).max_minutes == 20
    refused = browser.post("/trials/limits/", FORM | {"person_trials": 99})
    assert refused.status_code == 422
    assert 'value="99"' in refused.content.decode()
    assert browser.post("/trials/limits/?lab=okafor", {"drop": "1"}).status_code == 302
    assert not TrialPolicy.objects.exists()
    assert browser.get("/trials/limits/?lab=nowhere").status_code == 404
