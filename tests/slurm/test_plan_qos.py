"""On a real Slurm: a QoS is withdrawn from one association, twice at no harm, and given back as it was."""

import pytest

from policies.engine.qos_withdrawal import Standing, plan_withdrawal
from telemetry.services import Commands
from tests.support.slurm import ACCOUNT, CLUSTER, USERS, Slurm

pytestmark = [pytest.mark.slurm]


def test_it_is_withdrawn_from_one_user_and_given_back(facility: Slurm) -> None:
    def stands() -> dict[str, tuple[str, ...]]:
        rows = Commands(environment=facility.environment).associations(CLUSTER).rows
        return {row.user: tuple(sorted(row.qos or ())) for row in rows if row.user in USERS}

    before = stands()
    plan = plan_withdrawal(Standing(CLUSTER, USERS[0], ACCOUNT, "", before[USERS[0]]), "tiny", others=0)
    try:
        facility.run(*plan.withdraw)
        facility.run(*plan.withdraw, check=False)
        assert stands() == before | {USERS[0]: ("normal",)}
    finally:
        facility.run(*plan.restore)
        facility.run(*plan.restore, check=False)
    assert stands() == before
