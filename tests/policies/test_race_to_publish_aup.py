"""Two who publish the same version at once: one does, the other is told."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from policies import services as policy_services
from policies.engine.aup import write_aup
from policies.engine.packs import read_pack
from policies.models import AupVersion
from portal.core.errors import Conflict
from principals.actors import SYSTEM_ACTOR

THREADS = 6


@pytest.mark.sql
@pytest.mark.django_db(transaction=True)
def test_one_publishes_and_the_others_are_told() -> None:
    source = write_aup(read_pack("cautious")).replace('"draft"', '"2027-01"', 1)
    policy_services.current_aup()
    together = Barrier(THREADS)

    def publish(_: int) -> str:
        try:
            together.wait(timeout=60)
            policy_services.publish_aup(actor=SYSTEM_ACTOR, source=source)
        except Conflict as refused:
            return refused.code
        finally:
            connection.close()
        return "published"

    with ThreadPoolExecutor(THREADS) as pool:
        told = sorted(pool.map(publish, range(THREADS)))
    assert told == ["aup_version_exists"] * (THREADS - 1) + ["published"]
    assert AupVersion.objects.filter(version="2027-01").count() == 1
