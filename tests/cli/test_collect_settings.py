"""A collector's settings are read, and each fault is told with a code and what would mend it."""

import re
import sys
from pathlib import Path

import pytest

from portal.cli.collect.config import Config, read
from portal.cli.collect.privileges import start_helper
from portal.cli.files import Unusable
from principals.engine.recognition import Recogniser

GOOD = 'portal = "https://gatehouse.example.org"\ncluster = "aster"\n'


def settings(folder: Path, text: str) -> Config:
    path = folder / "collect.toml"
    path.write_text(text)
    return read(path)


def test_address_and_cluster_are_enough(tmp_path: Path) -> None:
    config = settings(tmp_path, GOOD)
    assert (config.portal, config.cluster, config.study, config.polling_interval_s) == (
        "https://gatehouse.example.org", "aster", "", 30,
    )  # fmt: skip
    assert config.signatures is None


def test_an_interval_may_be_a_whole_number_or_not(tmp_path: Path) -> None:
    assert settings(tmp_path, f"{GOOD}polling_interval_s = 60").polling_interval_s == 60
    assert settings(tmp_path, f"{GOOD}polling_interval_s = 7.5").polling_interval_s == 7.5


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f'{GOOD}colour = "red"', "unknown_setting"), (f'{GOOD}spool_mb = "many"', "wrong_kind"),
        (f"{GOOD}spool_mb = true", "wrong_kind"), (f"{GOOD}spool_mb = 0", "spool_size"), ("portal = ", "no_toml"),
        ('cluster = "aster"', "portal_address"), ('portal = "https://x.org"', "cluster_name"),
        ('portal = "http://portal.example.org"\ncluster = "a"', "portal_address"),
        ('portal = "https://me:word@x.org"\ncluster = "a"', "portal_address"),
        ('portal = "https://[x"\ncluster = "a"', "portal_address"),
        (f'{GOOD}host = "a b"', "host_name"), (f'{GOOD}study = "a\\nb"', "study_name"),
        (f"{GOOD}polling_interval_s = 0", "polling_interval"), (f'{GOOD}user = "root"', "user_name"),
        (f'{GOOD}spool = "var/spool"', "relative_path"), (f'{GOOD}records_from = "records"', "relative_path"),
        (f'{GOOD}records = "sysmon"', "records_form"),
        (f'{GOOD}spool = "var/spool"', "relative_path"), (f'{GOOD}place = "gateway"', "place_name"),
        (f"{GOOD}environment = 1", "wrong_kind"), (f'{GOOD}environment = "true"', "wrong_kind"),
    ],
)  # fmt: skip
def test_a_fault_has_a_code_and_a_remedy(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(Unusable) as caught:
        settings(tmp_path, text)
    said, remedy = str(caught.value).split("\n", 1)
    assert said.endswith(f"[{code}]") and remedy


def test_http_is_for_this_machine_alone(tmp_path: Path) -> None:
    assert settings(tmp_path, 'portal = "http://127.0.0.1:8000"\ncluster = "a"').portal


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=re.escape("[unreadable]")):
        read(tmp_path / "none.toml")


def harnesses(folder: Path, text: str) -> Config:
    path = folder / "harnesses.toml"
    path.write_text(text)
    return settings(folder, f'{GOOD}harnesses = "{path}"')


def test_a_site_s_ways_to_recognise_a_harness_come_before_ours(tmp_path: Path) -> None:
    found = harnesses(tmp_path, '[recognise.codex]\nexecutables = "our-codex"\n').signatures
    assert found is not None
    recogniser = Recogniser(found)
    names = ("our-codex", "codex", "claude", "ls")
    assert [recogniser.recognise([name]) for name in names] == ["codex", "codex", "claude-code", ""]


def test_variables_are_looked_for_where_the_site_says_so_and_its_own_come_first(tmp_path: Path) -> None:
    text = '[recognise.codex]\nmarkers = "OURSITE_CODEX CLAUDECODE"\n'
    assert harnesses(tmp_path, text).markers == ()
    found = settings(tmp_path, f'{GOOD}environment = true\nharnesses = "{tmp_path}/harnesses.toml"').markers
    assert found[:2] == (("CLAUDECODE", "codex"), ("OURSITE_CODEX", "codex"))
    assert dict(found)["CURSOR_AGENT"] == "cursor" and len(dict(found)) == len(found)
    assert settings(tmp_path, f"{GOOD}environment = true").markers[0][1] == "claude-code"


def test_the_sites_file_is_read_once_for_rights_are_given_up_later(tmp_path: Path) -> None:
    config = settings(tmp_path, f'{GOOD}environment = true\nharnesses = "{tmp_path}/harnesses.toml"')
    (tmp_path / "harnesses.toml").write_text('[recognise.codex]\nmarkers = "OURSITE_CODEX"\n')
    found = config.markers
    (tmp_path / "harnesses.toml").unlink()
    assert config.markers == found and config.signatures and found[0] == ("OURSITE_CODEX", "codex")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no_harness"), ("[recognise.ours]", "unknown_harness"), ('[recognise.amp]\nprogram = "x"', "bad_harness"),
        ("[recognise.amp]\nexecutables = 1", "bad_harness"), ('[recognise]\namp = "x"', "bad_harness"),
        ('[recognise.amp]\nmarkers = "A=1"', "bad_marker"),
    ],
)  # fmt: skip
def test_a_table_of_harnesses_that_makes_no_sense_is_told(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(Unusable, match=re.escape(f"[{code}]")):
        _ = harnesses(tmp_path, text).signatures


def test_a_helper_that_cannot_be_started_is_told_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(Unusable, match=r"/nonexistent/python cannot be started: .*\[no_helper\]\nInstall it"):
        start_helper(walk=True, kill_file="")
