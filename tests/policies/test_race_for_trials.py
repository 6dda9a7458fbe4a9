"""Many ask at once and the budget is spent exactly, never beyond."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from policies import services as policy_services
from policies.models import TrialGrant, TrialRefusal
from policies.services import TrialWish
from tests import factories
from tests.policies import worlds

ASKING, THREADS, BUDGET = 40, 8, 5


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "limits",
    [
        {"person_trials": BUDGET},
        {"lab_trials": BUDGET, "person_trials": BUDGET},
        {"person_gpu_minutes": BUDGET * 10},
    ],
    ids=["trials", "the lab's trials", "GPU-minutes"],
)
def test_forty_at_once_get_exactly_the_five_there_are(limits: dict[str, int]) -> None:
    lab = factories.make_lab("okafor", pi=factories.make_user())
    factories.make_account(factories.make_cluster(), lab)
    worlds.set_limits(**limits)
    # Two agents of one person: the budget is the person's.
    owner = factories.make_user()
    lab.memberships.create(user=owner, role="member")
    actors = [worlds.agent_actor(factories.make_agent(lab, owner)) for _ in range(2)]
    together = Barrier(THREADS)

    def ask(number: int) -> bool:
        try:
            if number < THREADS:
                together.wait(timeout=60)
            outcome = policy_services.request_trial(
                actor=actors[number % 2], lab=lab, wish=TrialWish(minutes=10, gpus=1)
            )
        finally:
            connection.close()
        return outcome.grant is not None

    with ThreadPoolExecutor(THREADS) as pool:
        granted = sum(pool.map(ask, range(ASKING)))
    assert granted == BUDGET
    assert TrialGrant.objects.count() == BUDGET
    assert TrialRefusal.objects.count() == ASKING - BUDGET
