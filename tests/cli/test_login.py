"""`gatehouse login` and `logout` with a real munged and a portal, as a user of this machine; where the token is."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from portal.cli import session_file
from principals.models import AgentToken, ClusterUser
from tests.support.slurm import munge

ROOT = Path(__file__).resolve().parents[2]
LOGIN = "daemon"


@pytest.fixture
def runtime():
    """A folder in memory that is the user's alone, as systemd makes one for whoever is logged in."""
    folder = Path(tempfile.mkdtemp(prefix="gatehouse-test-", dir="/dev/shm"))
    shutil.chown(folder, LOGIN)
    folder.chmod(0o700)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def command(live_server, cast, settings, runtime):
    """Run the command as the colleague's login name; the portal takes credentials of this machine's munged."""
    with tempfile.TemporaryDirectory(prefix="gatehouse-munge-") as name, munge(Path(name)) as socket:
        Path(name).chmod(0o755)
        settings.BASE_URL, settings.MUNGE_CLUSTERS, settings.MUNGE_SOCKET = live_server.url, ["aster"], str(socket)
        ClusterUser.objects.create(cluster=cast.cluster, login=LOGIN, user=cast.colleague)

        def run(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
            own = {
                "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": "/nowhere", "GATEHOUSE_URL": live_server.url,
                "GATEHOUSE_MUNGE_SOCKET": str(socket), "XDG_RUNTIME_DIR": str(runtime),
            }  # fmt: skip
            return subprocess.run(
                [sys.executable, "-m", "portal.cli.main", *words], env=own | environment, user=LOGIN, cwd="/",
                capture_output=True, text=True, check=False,
            )  # fmt: skip

        yield run


@pytest.mark.munge
@pytest.mark.one_database
@pytest.mark.django_db(transaction=True)
class TestCommand:
    def test_it_logs_in_is_somebody_and_logs_out(self, command, runtime):
        said = command("login")
        assert (said.returncode, said.stderr) == (0, "")
        assert said.stdout.startswith("okafor-docking acts for colleague until ")
        (file,) = (runtime / "gatehouse").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600 and str(file) in said.stdout
        assert "gha_" not in said.stdout
        me = command("me")
        assert "okafor-docking" in me.stdout and me.returncode == 0
        out = command("logout")
        assert (out.returncode, out.stdout) == (0, "The token ended.\n")
        assert not file.exists() and AgentToken.objects.get().state == "revoked"
        assert "Run gatehouse login" in command("me").stderr
        assert command("logout").stderr == "Nobody is logged in here.\n"

    def test_it_prints_it_and_keeps_it_nowhere(self, command, runtime):
        said = command("login", "--print", "--agent", "okafor-docking", "--scope", "me:read")
        assert said.stdout.startswith("gha_") and list(runtime.iterdir()) == []
        assert AgentToken.objects.get().scopes == ["me:read"]
        assert command("me", GATEHOUSE_TOKEN=said.stdout.strip()).returncode == 0

    def test_a_refusal_is_the_portal_s_words(self, command, settings):
        said = command("login", "--agent", "nobodys")
        assert said.returncode == 1
        assert said.stderr.startswith("You answer for no agent that is called nobodys. [agent_unknown]\n")
        settings.MUNGE_CLUSTERS = []
        said = command("login")
        assert said.returncode == 1 and "[munge_off]" in said.stderr and "--device" in said.stderr

    def test_another_name_of_the_portal_is_told_its_own(self, command, live_server):
        said = command("login", GATEHOUSE_URL=live_server.url.replace("localhost", "127.0.0.1"))
        assert "[munge_other_portal]" in said.stderr and live_server.url in said.stderr

    def test_a_node_without_munge_is_told(self, command):
        for environment in ({"PATH": "/nowhere"}, {"GATEHOUSE_MUNGE_SOCKET": "/nowhere"}):
            said = command("login", **environment)
            assert said.returncode == 2 and "[no_munge]" in said.stderr and "Traceback" not in said.stderr

    def test_no_credential_goes_in_the_clear_to_another_machine(self, command):
        said = command("login", GATEHOUSE_URL="http://gatehouse.example.org")
        assert said.returncode == 2 and "[portal_address]" in said.stderr


@pytest.fixture
def place(monkeypatch, tmp_path):
    """A folder that is in memory, as far as the list of mounts says."""
    folder, mounts = tmp_path / "run", tmp_path / "mounts"
    folder.mkdir(mode=0o700)
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\ntmpfs {folder} tmpfs rw 0 0\n")
    monkeypatch.setattr(session_file, "_MOUNTS", mounts)
    monkeypatch.setattr(session_file, "_folders", lambda: iter([folder]))
    return folder


def test_a_portal_s_token_is_found_for_that_portal_alone(place):
    file = session_file.write("https://one.example/", "gha_x")
    assert session_file.find("https://one.example") == file and file.read_text() == "gha_x\n"
    assert session_file.find("https://two.example") is None


def test_agents_of_one_person_are_kept_apart_where_they_are_named(place, monkeypatch):
    session_file.write("https://one.example", "gha_x")
    monkeypatch.setenv("GATEHOUSE_AGENT", "okafor-docking")
    assert session_file.find("https://one.example") is None


def test_a_new_login_takes_the_place_of_the_old_one(place):
    session_file.write("https://one.example", "gha_x")
    session_file.write("https://one.example", "gha_y")
    (file,) = (place / "gatehouse").iterdir()
    assert file.read_text() == "gha_y\n"


@pytest.mark.parametrize("fault", ["open", "link", "disk", "inner-open", "inner-link"])
def test_a_place_that_is_not_ours_alone_or_a_disk_is_none(place, fault, tmp_path):
    inner, other = place / "gatehouse", tmp_path / "other"
    other.mkdir(mode=0o700)
    if fault == "open":
        place.chmod(0o750)
    elif fault == "link":
        place.rmdir()
        place.symlink_to(other)
    elif fault == "disk":
        session_file._MOUNTS.write_text("/dev/sda1 / ext4 rw 0 0\n")
    elif fault == "inner-open":
        inner.mkdir(mode=0o755)
    else:
        inner.symlink_to(other)
    with pytest.raises(session_file.NoPlace):
        session_file.write("https://one.example", "gha_x")
    assert list(other.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to give a folder to somebody")
def test_somebody_else_s_place_is_none(place):
    os.chown(place, pwd.getpwnam(LOGIN).pw_uid, -1)
    with pytest.raises(session_file.NoPlace):
        session_file.write("https://one.example", "gha_x")
    assert session_file.find("https://one.example") is None
