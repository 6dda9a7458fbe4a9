"""Jobs of a real Slurm through hooks to sockets: whatever is killed meanwhile, each end reaches everybody once."""

import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import demo
from tests.support.site import Site, embedded_site, services_site, wait_for_all
from tests.support.slurm import slurm
from tests.support.subscribers import Subscriber

pytestmark = [pytest.mark.slurm, pytest.mark.outside, pytest.mark.one_database]

JOBS, FEW, QUIET = 200, 12, 48
PATIENCE_S = 600
AWAY_S = 2.0


@contextmanager
def subscribed(site: Site) -> Iterator[list[Subscriber]]:
    """Let the owner's agent, the lab's PI and the facility's staff listen, the agent twice."""
    keys = site.keys
    listening = [
        Subscriber("agent", site.port, token=keys["agent"]), Subscriber("its twin", site.port, token=keys["agent"]),
        Subscriber("pi", site.port, cookie=keys["pi"]), Subscriber("staff", site.port, cookie=keys["staff"]),
    ]  # fmt: skip
    try:
        yield [each.start() for each in listening]
    finally:
        for each in listening:
            each.stop()


def wait_until_heard(site: Site, subscribers: list[Subscriber], jobs: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while missing := {each.name: set(jobs) - each.jobs() for each in subscribers if not set(jobs) <= each.jobs()}:
        assert time.monotonic() < deadline, f"never heard: {missing}\n{site.facility.logs()}"
        time.sleep(0.2)


def assert_each_end_came_once(subscribers: list[Subscriber], jobs: list[int]) -> None:
    for each in subscribers:
        heard = Counter(end.job for end in each.ends if end.job in set(jobs))
        assert heard == Counter(jobs), (each.name, heard - Counter(jobs), Counter(jobs) - heard)
        assert max(Counter(end.seq for end in each.ends).values()) == 1
        assert not each.odd, (each.name, each.odd)


def print_lags(site: Site, subscribers: list[Subscriber], what: str, jobs: set[int]) -> float:
    """Print and return the median from the end of a job's script to the reading of its event, of all subscribers."""
    heard = [end for each in subscribers for end in each.ends if end.job in jobs]
    lags = sorted(end.at - site.ended_at(end.job) for end in heard)
    p95, load, sources = lags[int(0.95 * (len(lags) - 1))], os.getloadavg()[0], Counter(end.source for end in heard)
    print(  # noqa: T201 - the figure is what the test is for
        f"\n{what}: {len(lags)} ends read, median {statistics.median(lags):.2f} s, 95 % within "
        f"{p95:.2f} s, most {lags[-1]:.2f} s; {dict(sources)}; load {load:.1f}"
    )
    return statistics.median(lags)


def is_told(site: Site, subscribers: list[Subscriber]) -> None:
    """Run one job to its end and until all have heard of it: by then all of it is at work."""
    job = site.submit(1)
    wait_until_heard(site, subscribers, [job])


def test_twelve_jobs_reach_everybody_once_though_web_and_reader_are_killed(tmp_path: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="gatehouse-few-") as name,
        slurm(Path(name), hooks=True) as facility,
        embedded_site(facility, demo.empty_folder(facility.folder / "var")) as site,
        subscribed(site) as subscribers,
    ):
        is_told(site, subscribers)
        jobs = [site.submit(3) for _ in range(FEW)]
        wait_for_all(site, jobs[:1], PATIENCE_S)
        site.kill("web")
        wait_for_all(site, jobs[:6], PATIENCE_S)
        site.start("web")
        site.kill("reader")
        site.start("reader")
        wait_for_all(site, jobs, PATIENCE_S)
        wait_until_heard(site, subscribers, jobs)
        assert_each_end_came_once(subscribers, jobs)
        assert all(each.connections >= 2 for each in subscribers)
        print_lags(site, subscribers, "Web and reader killed", set(jobs))


@pytest.mark.soak
@pytest.mark.postgres
@pytest.mark.redis
def test_two_hundred_jobs_reach_everybody_once_whatever_is_killed() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="gatehouse-many-") as name,
        slurm(Path(name), hooks=True) as facility,
        services_site(facility) as site,
        subscribed(site) as subscribers,
    ):
        is_told(site, subscribers)
        quiet = [site.submit(4) for _ in range(QUIET)]
        wait_for_all(site, quiet, PATIENCE_S)
        wait_until_heard(site, subscribers, quiet)
        lag_s = print_lags(site, subscribers, "Nothing killed", set(quiet))
        rest = [site.submit(4) for _ in range(JOBS - QUIET)]
        facility.wait_until_saved()
        for number, name_of in enumerate(("slurmctld", "eventd", "web", "reader", "worker", "redis"), start=1):
            site.kill(name_of)
            time.sleep(AWAY_S)  # while jobs end
            site.start(name_of)
            wait_for_all(site, rest[: number * 20], PATIENCE_S)
        wait_for_all(site, rest, PATIENCE_S)
        wait_until_heard(site, subscribers, [*quiet, *rest])
        print_lags(site, subscribers, "Everything killed in turn", set(rest))
        runs = Counter(len((site.ends / str(job)).read_text().split()) for job in rest)
        print(f"jobs by how often Slurm ran them: {dict(runs)}")  # noqa: T201
        time.sleep(10)  # whatever is told twice, is told by now
        assert_each_end_came_once(subscribers, [*quiet, *rest])
        assert lag_s < 3, "1.5 s is the goal on a machine of its own"
