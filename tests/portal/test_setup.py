"""A site's first answers become a settings file that the portal starts from; nothing is overwritten."""

import os
import sqlite3
import stat
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from portal.core.errors import Invalid
from portal.management.site_answers import Answers, environment_of
from tests.support import demo

ROOT = Path(__file__).resolve().parent.parent.parent
PASSWORD = "correct horse battery"
BARE = {name: value for name, value in os.environ.items() if not name.startswith("GATEHOUSE_")} | {
    "PYTHONPATH": str(ROOT)
}
BARE.pop("DATABASE_URL", None)


def _manage(*line: str, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *line], cwd=ROOT, input=typed, capture_output=True, text=True, timeout=240,
        env=BARE | environment,
    )  # fmt: skip


def answers(**given: str) -> Answers:
    known = dict.fromkeys(Answers.names(), "") | {
        "url": "https://gatehouse.example.org", "facility": "Northgate", "data": "var", "sign_in": "password",
        "staff": "u0007",
    }  # fmt: skip
    return Answers(**(known | given))


def test_answers_become_a_portal(tmp_path):
    file, secret = tmp_path / "site.env", tmp_path / "secret"
    secret.write_text("s3cret\n")
    demo.empty_folder(tmp_path / "data")  # to migrate an empty one takes long, and `run` is tested to
    asked = _manage(
        "setup", "--file", str(file),
        # address, facility, data, database, sign-in, issuer, client, secret file, claim,
        # mail server, from, its way, its port, its user, staff, their address
        typed=f"\nOakfield Computing\n{tmp_path / 'data'}\n\nopenid\nhttps://id.example.org\n\n{secret}\nuid\n"
        "mail.example.org\ngatehouse@example.org\n\n2525\n\nu0007\nchief@example.org\n",
        GATEHOUSE_DATA=str(tmp_path / "before"),
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    assert "make run" in asked.stdout and "s3cret" not in asked.stdout + asked.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    rows = sqlite3.connect(tmp_path / "data" / "gatehouse.sqlite3").execute(
        "select username, email, is_research_computing from principals_user"
    )
    assert rows.fetchall() == [("u0007", "chief@example.org", 1)]
    # The portal that reads the file alone is the one that was described; a shell reads the same.
    shows = "s.FACILITY_NAME, s.SIGN_IN.login_claim, s.SIGN_IN.by_oidc, s.MAIL.port"
    code = f"from django.conf import settings as s; print({shows})"
    shown = _manage("shell", "--no-imports", "-c", code, GATEHOUSE_ENV_FILE=str(file))
    assert shown.stdout.strip() == "Oakfield Computing uid True 2525", shown.stderr
    by_shell = subprocess.run(["sh", "-c", f". {file}; echo $GATEHOUSE_FACILITY"], capture_output=True, text=True)
    assert by_shell.stdout == "Oakfield Computing\n"


def test_it_overwrites_nothing(tmp_path):
    file = tmp_path / "gatehouse.env"
    file.write_text("SECRET_KEY='of the first run'\n")
    with pytest.raises(CommandError, match="not overwritten"):
        call_command("setup", "--no-input", "--staff", "u0007", "--file", str(file), stdout=StringIO())
    link = tmp_path / "link.env"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CommandError, match="not overwritten"):
        call_command("setup", "--no-input", "--staff", "u0007", "--file", str(link), stdout=StringIO())
    assert file.read_text() == "SECRET_KEY='of the first run'\n" and not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--sign-in", "password"], "--password-file"),
        (["--sign-in", "openid", "--staff", "u0007"], "--oidc-secret-file"),
        (["--sign-in", "saml", "--staff", "u0007"], "GATEHOUSE_SAML_METADATA"),
        (["--sign-in", "saml", "--staff", "u0007", "--saml-metadata", "/no.xml", "--saml-login", "uid"], "not there"),
        (["--sign-in", "front", "--staff", "u0007"], "GATEHOUSE_REMOTE_USER_FROM"),
        (["--sign-in", "front", "--front-from", "10.0.4.7"], "--staff"),
        (
            ["--sign-in", "front", "--front-from", "10.0.4.7", "--staff", "u1", "--smtp-host", "m"],
            "GATEHOUSE_MAIL_FROM",
        ),
        (["--sign-in", "front", "--url", "gatehouse", "--staff", "u0007"], "https://host"),
        (["--sign-in", "front", "--database", "postgres://db/g", "--staff", "u0007"], "--broker"),
        (["--sign-in", "front", "--database", "mysql://db", "--staff", "u0007"], "postgres://"),
    ],
)
def test_what_is_missing_is_asked_for_by_name(tmp_path, line, said):
    file = tmp_path / "gatehouse.env"
    with pytest.raises(CommandError) as refused:
        call_command("setup", "--no-input", "--file", str(file), *line, stdout=StringIO())
    assert said in str(refused.value) and not file.exists()


def test_a_database_that_is_not_there_leaves_no_file(tmp_path):
    file = tmp_path / "gatehouse.env"
    done = _manage(
        "setup", "--no-input", "--file", str(file), "--sign-in", "front", "--front-from", "10.0.4.7",
        "--staff", "u0007", "--database", "postgres://g@127.0.0.1:9/g", "--broker", "redis://127.0.0.1:9/0",
        "--data", str(tmp_path / "d"),
        GATEHOUSE_DATA=str(tmp_path / "before"),
    )  # fmt: skip
    assert done.returncode == 1 and not file.exists()
    assert "`manage.py migrate` failed" in done.stderr


def test_it_listens_where_the_address_says():
    assert environment_of(answers(url="http://127.0.0.1:8080"))["PORT"] == "8080"
    assert "PORT" not in environment_of(answers()) | environment_of(answers(url="https://gatehouse.example.org:8443"))
    with pytest.raises(Invalid, match="port"):
        environment_of(answers(url="http://127.0.0.1:99999"))


def test_services_get_secrets_of_their_own():
    one, two = (environment_of(answers(database="postgres://db/g", broker="redis://r/0")) for _ in range(2))
    assert one["GATEHOUSE_PROFILE"] == "services" and one["GATEHOUSE_PROXY_COUNT"] == "1"
    assert len(one["SECRET_KEY"]) >= 32 and one["TOKEN_PEPPERS"].startswith("1:")
    assert {one["SECRET_KEY"], one["TOKEN_PEPPERS"]}.isdisjoint({two["SECRET_KEY"], two["TOKEN_PEPPERS"]})


@pytest.mark.parametrize(
    "url",
    [
        "https://*",
        "https://a,b",
        "https://.example.org",
        "https://me:pw@host",
        "https://host/?a",
        "https://[::1",
        "http://h h",
    ],
)
def test_an_address_that_is_more_than_one_host_is_refused(url):
    """Its host is who the portal says it is: `*` would let whoever asks choose that."""
    with pytest.raises(Invalid, match="address"):
        environment_of(answers(url=url))
    assert environment_of(answers(url="http://[::1]:8000"))["ALLOWED_HOSTS"].startswith("[::1],")


@pytest.mark.parametrize("facility", ["O'Neill", "a\\b", "$HOME", "a`id`", '"Northgate"'])
def test_a_value_that_a_reader_would_change_is_refused(tmp_path, facility):
    with pytest.raises(CommandError, match="GATEHOUSE_FACILITY"):
        call_command(
            "setup", "--no-input", "--file", str(tmp_path / "e"), "--sign-in", "front", "--front-from", "10.0.4.7",
            "--staff", "u0007", "--facility", facility, stdout=StringIO(),
        )  # fmt: skip


def test_half_a_provider_is_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s")
    with pytest.raises(Invalid, match="half set"):
        environment_of(answers(sign_in="openid", oidc_secret_file=str(secret)))


def test_a_settings_file_that_is_not_there_is_said(tmp_path):
    done = _manage("check", GATEHOUSE_ENV_FILE=str(tmp_path / "none"), GATEHOUSE_DATA=str(tmp_path))
    assert done.returncode == 1 and "GATEHOUSE_ENV_FILE" in done.stderr


def test_the_mail_servers_password_comes_from_a_file(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    mail = {"smtp_host": "m.example.org", "mail_from": "g@example.org", "smtp_user": "g"}
    made = environment_of(answers(**mail, smtp_password_file=str(secret)))
    assert (made["GATEHOUSE_SMTP_PASSWORD"], made["GATEHOUSE_SMTP_SECURITY"]) == ("s3cret", "starttls")
    assert "GATEHOUSE_SMTP_PORT" not in made
    with pytest.raises(Invalid, match="no such port"):
        environment_of(answers(**mail, smtp_password_file=str(secret), smtp_port="65536"))
    with pytest.raises(Invalid, match="password is not there"):
        environment_of(answers(**mail))
    with pytest.raises(Invalid, match="in the clear"):
        environment_of(answers(**mail, smtp_password_file=str(secret), smtp_security="none"))
