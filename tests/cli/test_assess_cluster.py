"""`gatehouse assess --cluster`: a name that no record has."""

from pathlib import Path

import pytest

from portal.cli.main import main
from tests.telemetry.engine.sacct_texts import COLUMNS, row, text


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "july.txt"
    columns = [*COLUMNS, "Cluster"]
    rows = [
        row(columns, JobID=str(number), JobIDRaw=str(number), Cluster=cluster)
        for number, cluster in enumerate(["labl24", "labl24", "attic"], start=1)
    ]
    path.write_bytes(text(*rows, columns=columns))
    return path


def test_a_cluster_that_no_record_names_is_told_with_those_that_are_there(dump: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert main(["assess", str(dump), "--cluster", "aster", "--json"]) == 2
    said = capsys.readouterr().err
    assert "No record is of cluster aster; those there are of labl24 (2), attic (1). [other_cluster]" in said
    assert said.endswith("Give one of these names to --cluster, or leave --cluster out.\n")


def test_a_marker_is_asked_for_as_a_shell_takes_it(dump: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SystemExit):
        main(["assess", str(dump), "--marker", "agent"])
    assert "as in 'Comment=*agent*'" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--cluster", "LABL24"]])
def test_what_the_remedy_names_works(dump: Path, capsys, options: list[str]) -> None:  # type: ignore[no-untyped-def]
    assert main(["assess", str(dump), *options, "--json"]) == 0
    assert capsys.readouterr().out
