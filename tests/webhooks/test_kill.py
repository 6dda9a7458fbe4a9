"""`kill -9` of the worker amid a request: nothing is lost, and what comes twice carries the same id."""

import os
import signal
import threading

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from tests.support import demo
from tests.webhooks.receivers import Receiver, receiving

pytestmark = [pytest.mark.outside, pytest.mark.one_database, pytest.mark.soak]  # its leases have to lapse
EVENTS = 350
_REGISTER_AND_TELL = (
    "from tests import factories; from tests.webhooks.conftest import register; "
    "made = register(factories.make_user('pi'), '{address}'); "
    f"made.tell(*(f'e{{{{n}}}}' for n in range({EVENTS}))); "
    "print(made.key)"
)


def test_nothing_is_lost_and_doubles_have_one_id(tmp_path):
    data, hold, is_held = tmp_path / "var", threading.Event(), threading.Event()

    def answer(nth: int) -> tuple[int, dict[str, str]]:
        if nth == 2:
            is_held.set()
            hold.wait(60)
        return 200, {}

    demo.empty_folder(data)
    with receiving(Receiver(answer)) as receiver:
        given = {"DEMO": "0", "GATEHOUSE_WEBHOOK_HOSTS": f"http://127.0.0.1:{receiver.port}"}
        script = _REGISTER_AND_TELL.format(address=receiver.address)
        key = demo.manage(data, "shell", "--no-imports", "-c", script, **given).stdout.split()[-1]
        with demo.portal(data, **given) as portal:
            portal.wait_for(portal.ready_line)
            portal.wait_until(is_held.is_set, "the second request")
            worker = portal.children()["worker"]
            for pid in portal.family():
                if os.getpgid(pid) == os.getpgid(worker):
                    os.kill(pid, signal.SIGKILL)
            hold.set()
            portal.wait_until(lambda: len(receiver.got) >= 5, "all the rest", every_s=0.2)
            portal.end()
    first, second, twice, *others = receiver.got
    assert (twice.id, twice.body) == (second.id, second.body)
    seqs = [seq for got in (first, second, *others) for seq in got.seqs]
    assert seqs == list(range(1, EVENTS + 1))
    assert len({got.id for got in receiver.got}) == 4
    for got in receiver.got:
        Verifier(key).verify(got.body, got.headers)
