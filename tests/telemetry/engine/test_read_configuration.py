"""What `scontrol show config` prints, in the forms of three releases."""

import pytest

from telemetry.engine.slurm.configuration import read_configuration
from tests.conftest import SHARED_DATA

TEXT = """Configuration data as of 2026-07-21T02:37:19
AccountingStorageEnforce = associations,limits,qos,safe
AuthInfo                = cred_expire=120,socket=/run/other/munge.socket
PrivateData             = none
EpilogSlurmctld[0]      = /etc/slurm/gatehouse-epilog.sh
SlurmctldHost[0]        = ctl1(10.0.0.5)
SlurmctldHost[1]        = ctl2
SlurmctldParameters     = rl_enable,rl_refill_rate=2
SlurmctldPort           = 6817-6820
SLURM_VERSION           = 25.11.7
MailProg                = (null)
TaskProlog              =

Slurmctld(primary) at ctl1 is UP
"""


def test_it_reads_settings_and_passes_over_the_rest():
    config = read_configuration(TEXT)
    assert config.get("SLURM_VERSION") == "25.11.7"
    assert config.version == (25, 11)
    assert config.words("SlurmctldParameters") == ["rl_enable", "rl_refill_rate"]
    assert config.munge_socket == "/run/other/munge.socket"
    assert config.controller == ("10.0.0.5", 6817)
    assert config.naming("gatehouse") == {"epilogslurmctld[0]": "/etc/slurm/gatehouse-epilog.sh"}


def test_what_is_not_set_is_not_there():
    config = read_configuration(TEXT)
    assert [config.get(name) for name in ("MailProg", "TaskProlog", "PrivateData", "NoSuchThing")] == [""] * 4


def test_nothing_is_read_from_nothing():
    config = read_configuration("")
    assert (config.version, config.controller, config.munge_socket) == ((0, 0), ("", 0), "")


@pytest.mark.shared_data
@pytest.mark.parametrize("release", ["22.05.8", "24.11.5", "25.11.7"])
def test_it_reads_what_real_controllers_print(release: str):
    text = (SHARED_DATA / f"slurm/slurm-{release}/scontrol_show_config.txt").read_text()
    config = read_configuration(text)
    assert config.get("SLURM_VERSION") == release
    assert config.controller[0] == "127.0.0.1"
    assert config.get("JobCompType") == "jobcomp/script"
    assert "limits" in config.words("AccountingStorageEnforce")
