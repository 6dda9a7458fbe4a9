"""A trial is granted from a budget with a receipt, or refused with every reason."""

from datetime import timedelta

import pytest
import time_machine

from policies import selectors
from policies import services as policy_services
from policies.models import TrialGrant, TrialRefusal
from policies.services import TrialWish
from portal.core import clock
from portal.core.errors import Invalid, NotAllowed
from portal.core.models import AuditEvent, LiveEvent
from principals.models import Agent
from tests import factories
from tests.conftest import Cast
from tests.policies import worlds


def _ask(agent: Agent, **wish: object) -> policy_services.TrialOutcome:
    fields = {"minutes": 10, "gpus": 1} | wish
    return policy_services.request_trial(actor=worlds.agent_actor(agent), lab=agent.lab, wish=TrialWish(**fields))  # type: ignore[arg-type]


def test_it_grants_with_a_receipt_for_the_person_behind_the_agent(cast: Cast) -> None:
    grant = _ask(cast.agent, purpose="Does it start?").grant
    assert grant is not None
    assert (grant.agent, grant.user, grant.lab, grant.cluster) == (cast.agent, cast.colleague, cast.lab, cast.cluster)
    assert (grant.minutes, grant.gpus, grant.gpu_minutes, grant.state) == (10, 1, 10, "granted")
    assert grant.public_id.startswith("trl_")
    assert grant.valid_until - grant.granted_at == timedelta(hours=1)
    assert grant.sbatch_options == [
        "--time=00:10:00", "--nodes=1", "--account=okafor_lab", "--gpus=1", "--qos=trial",
        f"--comment={grant.public_id}",
    ]  # fmt: skip


def test_a_grant_is_audited_and_told_once_to_agent_person_lab_and_desk(cast: Cast) -> None:
    grant = _ask(cast.agent).grant
    event = AuditEvent.objects.get(verb="trial.grant")
    assert (event.object_label, event.actor_label, event.lab_id) == (grant.public_id, cast.agent.name, cast.lab.pk)  # type: ignore[union-attr]
    news = LiveEvent.objects.get(name="trial.granted")
    assert set(news.topics) == {
        f"agent:{cast.agent.pk}", f"user:{cast.colleague.pk}", f"lab:{cast.lab.pk}", "facility:policies",
    }  # fmt: skip
    assert "colleague" not in str(news.payload)


def test_a_refusal_keeps_every_reason_and_writes_no_audit_event(cast: Cast) -> None:
    worlds.set_limits(max_minutes=15, max_gpus=1)
    outcome = _ask(cast.agent, minutes=60, gpus=4, nodes=2)
    assert outcome.grant is None
    assert outcome.returns_at is None
    refusal = TrialRefusal.objects.get()
    assert [reason["code"] for reason in refusal.reasons] == ["too_long", "too_many_gpus", "too_many_nodes"]
    assert all(reason["remedy"] for reason in refusal.reasons)
    assert not AuditEvent.objects.filter(verb__startswith="trial").exists()
    assert LiveEvent.objects.get(name="trial.refused").payload["codes"][0] == "too_long"


def test_agents_of_one_person_share_one_budget(cast: Cast) -> None:
    worlds.set_limits(person_trials=2)
    second = factories.make_agent(cast.lab, cast.colleague)
    assert _ask(cast.agent).grant
    assert _ask(second).grant
    assert [reason.code for reason in _ask(second).decision.reasons] == ["trials_spent"]


def test_the_labs_budget_bounds_everybody_in_it(cast: Cast) -> None:
    worlds.set_limits(person_trials=2, lab_trials=2)
    of_pi = factories.make_agent(cast.lab, cast.pi)
    assert _ask(cast.agent).grant
    assert _ask(of_pi).grant
    assert [reason.code for reason in _ask(of_pi).decision.reasons] == ["lab_trials_spent"]
    factories.make_account(factories.make_cluster("brook"), cast.other_lab)
    assert _ask(cast.foreign_agent, cluster="aster").grant


def test_a_labs_own_limits_stand_in_place_of_the_facilitys(cast: Cast) -> None:
    worlds.set_limits(max_minutes=5)
    worlds.set_limits(cast.lab, max_minutes=30)
    assert _ask(cast.agent, minutes=30).grant
    assert _ask(cast.foreign_agent, minutes=30).refusal


def test_budget_is_back_at_the_moment_that_was_promised(cast: Cast) -> None:
    worlds.set_limits(person_trials=1)
    with time_machine.travel("2026-07-01T10:00:00+00:00", tick=False) as at:
        assert _ask(cast.agent).grant
        at.shift(timedelta(hours=2))
        promised = _ask(cast.agent).returns_at
        assert promised is not None
        at.move_to(promised - timedelta(seconds=1))
        assert _ask(cast.agent).refusal
        at.move_to(promised)
        assert _ask(cast.agent).grant


def test_a_person_outside_the_lab_asks_in_vain(cast: Cast) -> None:
    with pytest.raises(NotAllowed):
        policy_services.request_trial(
            actor=factories.actor_of(cast.outsider), lab=cast.lab, wish=TrialWish(minutes=5)
        )  # fmt: skip
    with pytest.raises(NotAllowed):
        policy_services.request_trial(
            actor=worlds.agent_actor(cast.foreign_agent), lab=cast.lab, wish=TrialWish(minutes=5)
        )


@pytest.mark.parametrize("wish", [{"minutes": 0}, {"nodes": 0}, {"gpus": -1}, {"minutes": 10**9}])
def test_sizes_that_make_no_sense_are_invalid_not_refused(cast: Cast, wish: dict[str, int]) -> None:
    with pytest.raises(Invalid):
        _ask(cast.agent, **wish)
    assert not TrialRefusal.objects.exists()


def test_a_cluster_without_an_account_is_named_with_those_that_have_one(cast: Cast) -> None:
    with pytest.raises(Invalid) as caught:
        _ask(cast.agent, cluster="brook")
    assert "aster" in caught.value.remedy


def test_a_lab_on_two_clusters_must_name_one(cast: Cast) -> None:
    factories.make_account(factories.make_cluster("brook"), cast.lab)
    with pytest.raises(Invalid, match="aster, brook"):
        _ask(cast.agent)
    grant = _ask(cast.agent, cluster="brook").grant
    assert grant is not None
    assert grant.cluster.name == "brook"


def test_a_purpose_loses_its_secrets_and_control_characters(cast: Cast) -> None:
    grant = _ask(cast.agent, purpose="use ghp_abcdefghijklmnopqrstuvwxyz0123456789\x00 now").grant
    assert grant is not None
    assert "ghp_abcdef" not in grant.purpose
    assert "\x00" not in grant.purpose


def test_the_budget_shown_is_the_budget_enforced(cast: Cast) -> None:
    worlds.set_limits(person_trials=3, person_gpu_minutes=20)
    _ask(cast.agent)
    budget = selectors.trial_budget(cast.colleague, cast.lab)
    assert (budget.trials_used, budget.trials_left, budget.gpu_minutes_left) == (1, 2, 10)
    assert budget.returns_at == TrialGrant.objects.get().granted_at + timedelta(days=1)
    worlds.make_trial(cast, granted_at=clock.now() - timedelta(days=1, seconds=1))
    assert selectors.trial_budget(cast.colleague, cast.lab).trials_used == 1
