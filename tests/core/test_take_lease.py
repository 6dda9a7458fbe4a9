"""Leases: one of two wins, a lease lapses, its holder renews it."""

import os
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from django.db import connections

from portal.core import clock, leases
from portal.core.models import Lease
from tests.support.capabilities import ROOT

pytestmark = pytest.mark.django_db


def test_the_first_takes_it_and_the_second_does_not() -> None:
    assert leases.take("sealer", "a", seconds=60)
    assert not leases.take("sealer", "b", seconds=60)
    assert leases.take("other", "b", seconds=60)


def test_its_holder_renews_it() -> None:
    leases.take("sealer", "a", seconds=60)
    until = Lease.objects.get().until
    assert leases.take("sealer", "a", seconds=120)
    assert Lease.objects.get().until > until


def test_a_lapsed_lease_is_free() -> None:
    leases.take("sealer", "a", seconds=60)
    Lease.objects.update(until=clock.now() - timedelta(seconds=1))
    assert leases.take("sealer", "b", seconds=60)
    assert not leases.take("sealer", "a", seconds=60)


def test_only_its_holder_gives_it_back() -> None:
    leases.take("sealer", "a", seconds=60)
    leases.release("sealer", "b")
    assert not leases.take("sealer", "b", seconds=60)
    leases.release("sealer", "a")
    assert leases.take("sealer", "b", seconds=60)


def test_no_two_holders_have_one_name() -> None:
    names = {leases.holder_name() for _ in range(100)}
    assert len(names) == 100
    assert all(len(name) <= 80 for name in names)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("lapsed", [False, True])
def test_of_many_at_the_same_time_one_wins(lapsed: bool) -> None:
    if lapsed:
        Lease.objects.create(name="sealer", holder="gone", until=clock.now() - timedelta(seconds=1))
    won: list[str] = []
    start = threading.Barrier(6)

    def run(name: str) -> None:
        start.wait(10)
        if leases.take("sealer", name, seconds=60):
            won.append(name)
        connections.close_all()

    threads = [threading.Thread(target=run, args=(f"p{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(won) == 1
    assert Lease.objects.get().holder == won[0]


def test_a_block_holds_a_lease_and_gives_it_back_even_when_it_fails() -> None:
    with leases.held("sealer", seconds=60) as ours, leases.held("sealer", seconds=60) as theirs:
        assert ours and not theirs
    with pytest.raises(ZeroDivisionError), leases.held("sealer", seconds=60):
        raise ZeroDivisionError
    assert leases.take("sealer", "b", seconds=60)


def test_a_lease_that_a_clock_ahead_wrote_holds_nobody_up() -> None:
    Lease.objects.create(name="sealer", holder="a", until=clock.now() + timedelta(days=400))

    assert leases.take("sealer", "b", seconds=60)
    assert not leases.take("sealer", "c", seconds=60)


@pytest.mark.outside
def test_the_lease_of_a_process_that_was_killed_here_is_free_at_once() -> None:
    code = "import os; from portal.core import leases; print(leases.holder_name(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", f"import django; django.setup(); {code}"], cwd=ROOT, text=True,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "portal.settings"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        holder = other.stdout.readline().strip()
        assert leases.take("reader", holder, seconds=180)
        assert not leases.is_gone(holder) and not leases.take("reader", "mine", seconds=180)
        other.kill()
    assert leases.is_gone(holder) and leases.take("reader", "mine", seconds=180)


@pytest.mark.parametrize("place", ["", "0123456789ab"])
def test_of_a_process_elsewhere_nobody_says_that_it_is_gone(place: str) -> None:
    assert not leases.is_gone(f"login1:{place}:999999999:1:abcd")
    assert not leases.is_gone("login1:999999999:abcd")  # as names were written before


def test_an_id_that_another_process_has_by_now_is_no_sign_of_life() -> None:
    host, place, pid, _, token = leases.holder_name().rsplit(":", 4)
    assert leases.is_gone(f"{host}:{place}:{pid}:1:{token}") is bool(place)
    assert not leases.is_gone(leases.holder_name())
