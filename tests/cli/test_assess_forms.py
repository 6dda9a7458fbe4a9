"""`gatehouse assess` over dumps that say different things of one job, from files and from a pipe, in any form."""

import json
from pathlib import Path
from typing import Any

from tests.cli.test_assess import gatehouse
from tests.telemetry.engine.gpu_texts import export, sample
from tests.telemetry.engine.sacct_texts import row, text
from tests.telemetry.engine.test_assess_forms import document, job

OLD, NEW = text(row(NCPUS="8")), text(row(NCPUS="16"))


def core_hours(*names: str, cwd: Path, stdin: bytes = b"") -> Any:
    ran = gatehouse(*names, "--json", cwd=cwd, stdin=stdin)
    assert (ran.returncode, ran.stderr) == (0, b"")
    return {
        one["key"]: one["value"] for section in json.loads(ran.stdout)["sections"] for one in section["figures"]
    }["total-core-hours"]  # fmt: skip


def test_the_later_of_two_records_counts_wherever_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(OLD)
    (tmp_path / "new").write_bytes(NEW)
    assert core_hours("old", "new", cwd=tmp_path) == 16
    assert core_hours("new", "old", cwd=tmp_path) == 8
    assert core_hours("old", "-", cwd=tmp_path, stdin=NEW) == 16
    assert core_hours("-", "new", cwd=tmp_path, stdin=OLD) == 16
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


def test_json_is_read_from_a_pipe_beside_text(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(OLD)
    assert core_hours("text", "-", cwd=tmp_path, stdin=document(job())) == 16


def test_an_export_of_gpu_use_adds_its_figures_and_one_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "july").write_bytes(OLD)
    ran = gatehouse(
        "july", "--gpu", "-", "--json", "--out", "r.html", cwd=tmp_path, stdin=export(sample(101, "a", 80, 10))
    )
    figures = {one["key"]: one for section in json.loads(ran.stdout)["sections"] for one in section["figures"]}
    assert figures["gpu-use"]["rows"][0]["values"][:4] == [0, 1, 0, 0]
    html = (tmp_path / "r.html").read_text()
    assert '<figure class="parts">' in html and "heavy is a mean of 50" in html
    for options, code in ((("--gpu", "july"), b"[columns_missing]"), (("-", "--gpu", "-"), b"[stdin_twice]")):
        refused = gatehouse("july", *options, cwd=tmp_path)
        assert (refused.returncode, code in refused.stderr) == (2, True)
    kept = gatehouse("july", "--gpu", "absent", "--out", "july", cwd=tmp_path)
    assert (kept.returncode, (tmp_path / "july").read_bytes()) == (2, OLD)
