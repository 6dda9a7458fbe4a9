"""The closed loop at the size of the measurement, 7,088,836 jobs on PostgreSQL: every planted number is found again.

GATEHOUSE_SOAK_SHARE takes a share of them, 0.003 to 1: of less, not everybody planted would have a job. Below 0.01 rows
of fewer than five people are withheld, as the report has to: they are counted and printed, not compared.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.reports.planted import cells, compare, is_of_few, places, with_derived
from tests.support.services import postgres

ROOT = Path(__file__).resolve().parents[2]
SHARE = float(os.environ.get("GATEHOUSE_SOAK_SHARE", "1"))
ALL_SHOWN = 0.01  # from this share on nothing is of few but what is planted so
MOST_MB = 1500  # whatever the share: jobs pass through, they are not kept


@pytest.mark.soak
def test_the_whole_measurement_is_recovered() -> None:
    with tempfile.TemporaryDirectory(prefix="gatehouse-whole-") as name:
        told, planted, found = plant_and_draft(Path(name))
    compared = compare(planted, found)
    print(told | {"recovered": compared.held, "withheld": compared.withheld})  # noqa: T201 - for whoever runs it
    assert compared.off == {}
    few = {place.name for place in places() if is_of_few(planted, place)}
    assert SHARE < ALL_SHOWN or set(compared.withheld) == few
    assert compared.held > len(compared.withheld)
    assert told["peak_mb"] < MOST_MB


def plant_and_draft(folder: Path) -> tuple[dict[str, Any], dict[str, Any], dict[tuple[str, str, str], float | None]]:
    """Return what it took, what was planted, and the report's cells; on a PostgreSQL of its own."""
    with postgres(folder) as url:
        if url is None:
            pytest.skip("PostgreSQL is not installed")
        environment = os.environ | {
            "DATABASE_URL": url, "GATEHOUSE_DATA": str(folder), "GATEHOUSE_PROFILE": "embedded", "LOG_LEVEL": "ERROR",
        }  # fmt: skip
        command = [sys.executable, "-m", "tests.reports.whole", str(SHARE), str(folder)]
        ran = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    texts = ((folder / name).read_text(encoding="utf-8") for name in ("planted.json", "content.json"))
    planted, content = map(json.loads, texts)
    return json.loads(ran.stdout.splitlines()[-1]), with_derived(planted), cells(content)
