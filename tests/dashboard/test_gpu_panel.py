"""The panel of GPU use on the Overview and My lab: every job with GPUs is in it, and each number opens its jobs."""

import html
import re
from typing import Any

import pytest

from portal.dashboard.gpu_use import KEYS
from principals.actors import SYSTEM_ACTOR
from principals.models import ClusterUser
from telemetry import services
from telemetry.engine.gpu_use import HEAVY_PERCENT
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.gpu_rows import gpu_job, reading

OVERVIEW = "/overview/?period=2026-07"
# Job: actor, compute, memory; of the last two nobody measured anything.
JOBS = {1: ("agent", 90, 80), 2: ("agent", 5, 5), 3: ("human", 60, 10), 4: ("agent", None, 0), 5: ("human", None, 0)}


@pytest.fixture
def user(cast: Cast) -> ClusterUser:
    return factories.make_cluster_user(cast.cluster, cast.colleague)


@pytest.fixture
def house(cast: Cast, user: ClusterUser) -> Cast:
    """Five jobs with GPUs in the cast's lab, and a measured one in another."""
    for number, (actor, compute, memory) in JOBS.items():
        gpu_job(user, cast.lab, number, actor=actor)
        if compute is not None:
            record(cast, reading(number, compute, memory))
    gpu_job(user, cast.other_lab, 6, actor="human")
    record(cast, reading(6, 10, 90))
    services.catch_up(cluster=cast.cluster)
    return cast


def record(cast: Cast, *readings: Any) -> None:
    services.record_gpu_utilisation(actor=SYSTEM_ACTOR, cluster=cast.cluster, readings=readings)


def panel(page: Any) -> dict[str, list[str]]:
    """Return the shares of each row: both, compute, memory, neither, no reading."""
    rows = page.context["gpu_use"].rows
    return {row["label"]: [cell["share"] for cell in (*row["cells"], row["unmeasured"])] for row in rows}


def plain(words: list[str]) -> list[str]:
    return [word.replace("\u202f", "").replace("\xa0", "") for word in words]


def test_the_overview_holds_every_job_and_says_which_were_not_measured(house: Cast) -> None:
    page = sign_in(house.staff).get(OVERVIEW)
    rows = {label: plain(shares) for label, shares in panel(page).items()}
    assert rows == {
        "Agents": ["50.0%", "0.0%", "0.0%", "50.0%", "33.3%"], "People": ["0.0%", "50.0%", "50.0%", "0.0%", "33.3%"],
        "All jobs": ["25.0%", "25.0%", "25.0%", "25.0%", "33.3%"],
    }  # fmt: skip
    shown = page.content.decode()
    assert f"heavy is a mean of {HEAVY_PERCENT:.0f}" in shown and "Measured: 4 of 6 jobs." in shown
    assert "of agents’ jobs use neither compute nor memory of their GPUs heavily" in shown
    assert all(name in shown for name, _ in KEYS)


def test_my_lab_shows_the_lab_alone(house: Cast) -> None:
    page = sign_in(house.pi).get(f"/my-lab/?lab={house.lab.name}")
    assert {label: plain(shares)[-1] for label, shares in panel(page).items()} == {
        "Agents": "33.3%", "People": "50.0%", "All jobs": "40.0%",
    }  # fmt: skip
    assert "Measured: 3 of 5 jobs." in page.content.decode()


@pytest.mark.parametrize("who", ["staff", "pi"])
def test_each_number_opens_as_many_jobs_as_it_says(house: Cast, who: str) -> None:
    client = sign_in(getattr(house, who))
    rows = client.get(OVERVIEW if who == "staff" else f"/my-lab/?lab={house.lab.name}").context["gpu_use"].rows
    for row in rows:
        for cell in (*row["cells"], row["unmeasured"]):
            jobs = client.get(cell["url"]).context["page"].paginator.count
            assert f"{jobs} job{'' if jobs == 1 else 's'}" == html.unescape(cell["sub"]), cell


def test_the_parts_of_a_bar_fill_it(house: Cast) -> None:
    for row in sign_in(house.staff).get(OVERVIEW).context["gpu_use"].rows:
        assert sum(float(part["width"].rstrip("%")) for part in row["parts"]) == pytest.approx(100)
        starts = [float(part["x"].rstrip("%")) for part in row["parts"]]
        assert starts == sorted(starts) and starts[0] == 0


def test_the_export_holds_every_actor(house: Cast) -> None:
    rows = sign_in(house.staff).get("/overview/gpu-use.json?period=2026-07").json()
    assert {row["actor"]: (row["jobs"], row["unmeasured_jobs"]) for row in rows} == {
        "agent": (3, 1), "human": (3, 1), "unknown": (0, 0)
    }  # fmt: skip
    text = sign_in(house.staff).get("/overview/gpu-use.csv?period=2026-07")
    assert b"stranded_hours" in b"".join(text) and re.search("gpu-use.csv", text["Content-Disposition"])


def test_without_a_reading_it_says_that_nobody_measured(cast: Cast, user: ClusterUser) -> None:
    gpu_job(user, cast.lab, 1)
    services.catch_up(cluster=cast.cluster)
    page = sign_in(cast.staff).get(OVERVIEW)
    assert "Nobody measured what jobs did with their GPUs" in page.content.decode()
    assert plain(panel(page)["Not attributed"])[-1] == "100.0%"


def test_without_jobs_on_gpus_there_is_no_panel(cast: Cast, user: ClusterUser) -> None:
    gpu_job(user, cast.lab, 1, gpus=0)
    services.catch_up(cluster=cast.cluster)
    assert 'id="gpu-use"' not in sign_in(cast.staff).get(OVERVIEW).content.decode()
    assert 'id="gpu-use"' not in sign_in(cast.pi).get(f"/my-lab/?lab={cast.lab.name}").content.decode()
