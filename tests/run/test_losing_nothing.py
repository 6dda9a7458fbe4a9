"""Whatever ends a portal, an upload that it took is worked off once it is back: every row once, and the audit whole."""

import json
import os
import random
import re
import signal
import time
import urllib.request
from contextlib import ExitStack

import pytest

from tests.conftest import SHARED_DATA
from tests.support import demo
from tests.telemetry.engine.sacct_texts import many_rows

pytestmark = [pytest.mark.outside, pytest.mark.one_database]
_MAKE_TOKEN = (
    "from tests import factories; cluster = factories.make_cluster('aster'); "
    "print(factories.make_service_token('ingest:jobs', name='reader'))"
)


class Reader:
    """A cluster's reader: sends accounting text, asks how far it is."""

    def __init__(self, data) -> None:
        demo.empty_folder(data)
        self.token = demo.manage(data, "shell", "--no-imports", "-c", _MAKE_TOKEN).stdout.split()[-1]

    def _ask(self, url: str, body: bytes | None = None) -> dict:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "text/plain"}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as answer:
            return json.load(answer)

    def send(self, portal, rows: int) -> str:
        return self.send_body(portal, b"".join(many_rows(rows)))

    def send_body(self, portal, body: bytes, cluster: str = "aster", format: str = "sacct") -> str:
        return self._ask(f"{portal.url}/api/v1/ingest/jobs?cluster={cluster}&format={format}", body)["id"]

    def batch(self, portal, key: str) -> dict:
        return self._ask(f"{portal.url}/api/v1/ingest/batches/{key}")


def _require_whole(data, rows: int) -> None:
    said = json.loads(demo.manage(data, "usage", "--cluster", "aster", "--json").stdout)
    assert said["job_count"] == rows
    demo.manage(data, "verify_audit")


def _finish(data, reader: Reader, key: str, rows: int) -> None:
    with demo.portal(data, DEMO="0") as portal:
        portal.wait_for(portal.ready_line)
        portal.wait_until(lambda: reader.batch(portal, key)["state"] in ("done", "failed"), "its end", every_s=0.5)
        batch = reader.batch(portal, key)
        portal.end()
    assert (batch["state"], batch["rows"], batch["rejected_rows"]) == ("done", rows, 0)
    assert batch["created_rows"] + batch["duplicate_rows"] == rows


@pytest.mark.soak
@pytest.mark.shared_data
def test_the_reference_log_over_http_and_a_running_worker_gives_its_totals(tmp_path):
    data = tmp_path / "var"
    reader, body = Reader(data), (SHARED_DATA / "xdmod" / "phillips.log").read_bytes()
    with demo.portal(data, DEMO="0") as portal:
        portal.wait_for(portal.ready_line)
        key = reader.send_body(portal, body, "phillips", "xdmod")
        portal.wait_until(lambda: reader.batch(portal, key)["state"] in ("done", "failed"), "its end", every_s=0.5)
        assert (reader.batch(portal, key)["state"], reader.batch(portal, key)["created_rows"]) == ("done", 4285)
        portal.end()
    said = json.loads(demo.manage(data, "usage", "--cluster", "phillips", "--json").stdout)
    expected = json.loads((SHARED_DATA / "xdmod" / "verified_totals.json").read_text())["phillips"]
    names = {"job_count": "job_count", "cpu_hours": "total_cpu_hours", "wait_hours": "total_waitduration_hours"}
    assert {name: said[name] for name in names} == {name: expected[theirs] for name, theirs in names.items()}


def test_ctrl_c_in_the_middle_of_an_upload_loses_nothing(tmp_path):
    data, rows = tmp_path / "var", 15_000
    reader = Reader(data)
    with demo.portal(data, DEMO="0") as portal:
        portal.wait_for(portal.ready_line)
        key = reader.send(portal, rows)
        portal.wait_until(lambda: reader.batch(portal, key)["rows"] > 0, "the first chunk", every_s=0.2)
        portal.end(signal.SIGINT)
        assert "Traceback" not in portal.said
    _finish(data, reader, key, rows)
    _require_whole(data, rows)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_kill_9_again_and_again_loses_nothing(tmp_path, seed):
    rng, data, rows = random.Random(seed), tmp_path / "var", 60_000
    reader = Reader(data)
    key = ""
    for _ in range(6):
        with demo.portal(data, DEMO="0") as portal:
            portal.wait_for(portal.ready_line)
            key = key or reader.send(portal, rows)
            time.sleep(rng.uniform(0, 3))  # anywhere: that is the point
            victims = list(portal.family())
            if rng.random() < 0.5:
                victims = [portal.process.pid]
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            portal.close()
    _finish(data, reader, key, rows)
    _require_whole(data, rows)


_SEAL = "from portal.core import audit\nwhile True: audit.seal(limit=5)"
_WRITE = (
    "from django.db import transaction; from portal.core import audit; from portal.core.actors import SYSTEM\n"
    "while True:\n"
    "    with transaction.atomic(): audit.record(actor=SYSTEM, verb='x.done', object_kind='x', object_id=1)"
)


@pytest.mark.soak
def test_two_sealers_killed_at_any_moment_leave_one_chain(tmp_path):
    rng, data = random.Random(7), tmp_path / "var"
    demo.empty_folder(data)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(demo.python(data, _WRITE))
        for _ in range(15):
            with demo.python(data, _SEAL), demo.python(data, _SEAL):
                time.sleep(rng.uniform(2, 4))  # anywhere: that is the point
    said = demo.manage(data, "verify_audit").stdout
    assert (found := re.match(r"(\d+) events verified", said)) and int(found[1]) > 100, said
