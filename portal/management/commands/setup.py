"""`manage.py setup`: the few questions that a site must answer, once; they become its settings file."""

import getpass
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core import environment_file, mail_settings
from portal.core.errors import DomainError
from portal.management.site_answers import SIGN_IN, Answers, environment_of

_MANAGE = [sys.executable, str(settings.BASE_DIR / "manage.py")]
_QUESTIONS = (
    ("url", "Address that people will use", "http://127.0.0.1:8000"),
    ("facility", "Name of the facility", "Northgate Research Computing"),
    ("data", "Folder for what it keeps", "var"),
    ("database", "Database: postgres://… for a facility, empty for SQLite on this host", ""),
)
_OF_OPENID = (
    ("oidc_issuer", "Issuer of the provider (https://…)", ""),
    ("oidc_client_id", "Client id there", "gatehouse"),
    ("oidc_secret_file", "File that holds the client secret", ""),
    ("login_claim", "Claim that is the login name on your clusters; empty: people are known by verified address", ""),
)
_OF_SAML = (
    ("saml_metadata", "Metadata of the provider: a file, or its https:// address", ""),
    ("saml_login", "Attribute (by its Name) that is the login name on your clusters", ""),
)
_OF_FRONT = (
    ("front_header", "Header in which your front names the person", "X-Remote-User"),
    ("front_from", "Addresses from which your front calls the portal", ""),
)
_OF_MAIL = (
    ("smtp_security", f"How the mail server is spoken to: {', '.join(mail_settings.WAYS)}", "starttls"),
    ("smtp_port", "Its port; empty: 25, 587 or 465, as it is spoken to", ""),
    ("smtp_user", "Name to sign in there with, empty: none", ""),
)


class Command(BaseCommand):
    help = (
        "Ask what a new site must answer, prepare its database, add the first staff account, and write the settings "
        "file (mode 0600), which is never overwritten."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--file", default="gatehouse.env", help="the settings file to write (gatehouse.env)")
        parser.add_argument(
            "--no-input", action="store_true", help="ask nothing: take options and what they default to"
        )
        parser.add_argument("--url", help="the address that people will use; https:// switches secure cookies on")
        parser.add_argument("--facility", help="its name, as pages show it")
        parser.add_argument("--data", help="the folder for what it keeps (var)")
        parser.add_argument("--database", help="postgres://… ; without it SQLite, and all in one process group")
        parser.add_argument("--broker", help="redis://… ; needed beside PostgreSQL")
        parser.add_argument("--sign-in", choices=SIGN_IN, help="how people sign in (password)")
        parser.add_argument("--oidc-issuer", help="with openid: the provider's issuer")
        parser.add_argument("--oidc-client-id", help="with openid: the client id there (gatehouse)")
        parser.add_argument("--oidc-secret-file", help="with openid: the file that holds the client secret")
        parser.add_argument("--login-claim", help="with openid: the claim that is the login name on your clusters")
        parser.add_argument("--saml-metadata", help="with saml: the provider's metadata, a file or an https:// address")
        parser.add_argument("--saml-login", help="with saml: the attribute that is the login name on your clusters")
        parser.add_argument("--front-header", help="with front: the header that names the person (X-Remote-User)")
        parser.add_argument("--front-from", help="with front: the addresses from which it calls the portal")
        parser.add_argument("--smtp-host", help="the mail server; without one no mail is sent")
        parser.add_argument("--mail-from", help="with a mail server: the address that mails are from")
        parser.add_argument("--smtp-security", help="with a mail server: none, starttls (the default) or tls")
        parser.add_argument("--smtp-port", help="with a mail server: its port (25, 587 or 465, by --smtp-security)")
        parser.add_argument("--smtp-user", help="with a mail server: the name to sign in there with")
        parser.add_argument("--smtp-password-file", help="with that name: the file that holds its password")
        parser.add_argument("--staff", help="login name of the first staff account")
        parser.add_argument("--staff-email", help="where that person's notices are mailed to")
        parser.add_argument("--password-file", help="the first line is that account's password; - is standard input")

    def handle(self, *args: Any, **options: Any) -> None:
        path = Path(options["file"]).absolute()  # a link is not followed: it would lead elsewhere
        try:
            environment_file.require_absent(path)
            answers, password = self._answers(options)
            values = environment_of(answers)
            text = environment_file.text_of(values, path)
            self._prepare(answers, values, password)
            environment_file.write(path, text)
        except DomainError as error:
            raise CommandError(error.words) from error
        self._say_what_next(path, answers)

    def _answers(self, options: dict[str, Any]) -> tuple[Answers, str]:
        asks = not options["no_input"]
        given = {name: options[name] for name in Answers.names()}

        def settle(*questions: tuple[str, str, str]) -> None:
            for name, words, default in questions:
                if given[name] is None:
                    given[name] = self._ask(words, default) if asks else default

        settle(*_QUESTIONS)
        if given["database"]:
            settle(("broker", "Broker and cache: redis://…", "redis://127.0.0.1:6379/0" if asks else ""))
        settle(("sign_in", f"How people sign in: {', '.join(SIGN_IN)}", "password"))
        settle(*{"openid": _OF_OPENID, "saml": _OF_SAML, "front": _OF_FRONT}.get(given["sign_in"], ()))
        settle(("smtp_host", "Mail server, for what people are told of; empty: they read it in the portal alone", ""))
        if given["smtp_host"]:
            host = urlsplit(given["url"]).hostname or ""  # a machine's number alone is no mail domain
            named = f"gatehouse@{host}" if asks and "." in host.strip("0123456789.") else ""
            settle(("mail_from", "Address that mails are from", named), *_OF_MAIL)
            if given["smtp_user"]:
                settle(("smtp_password_file", "File that holds the password there", ""))
        settle(("staff", "Login name of the first staff account", ""))
        if given["smtp_host"]:
            settle(("staff_email", f"Mail address of {given['staff']}; empty: their notices stay in the portal", ""))
        answers = Answers(**{name: value or "" for name, value in given.items()})
        return answers, self._password(answers, options["password_file"], asks=asks)

    def _ask(self, words: str, default: str) -> str:
        self.stderr.write(f"{words}{f' [{default}]' if default else ''}: ", ending="")
        self.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise CommandError("The answers ended before the questions. Say --no-input and give options instead.")
        return line.strip() or default

    def _password(self, answers: Answers, file: str | None, *, asks: bool) -> str:
        if file == "-":
            return sys.stdin.readline().rstrip("\n")
        if file:
            try:
                return Path(file).read_text(encoding="utf-8").split("\n", 1)[0]
            except OSError as error:
                raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
        if answers.sign_in != "password":
            return ""
        if not asks:
            raise CommandError("The first staff account needs a password. Give --password-file.")
        if not sys.stdin.isatty():
            return self._ask(f"Password of {answers.staff}", "")
        password = getpass.getpass(f"Password of {answers.staff}: ")
        if getpass.getpass("Once more: ") != password:
            raise CommandError("The two passwords differ; nothing was written.")
        return password

    def _prepare(self, answers: Answers, values: dict[str, str], password: str) -> None:
        """Check the settings, make the tables, add the account: all with the settings that will be written."""
        kept = {name: value for name, value in os.environ.items() if name not in values}
        environment = kept | values | {"LOG_LEVEL": "ERROR"}
        mailed = ["--email", answers.staff_email] if answers.staff_email else []
        add = ["add_person", answers.staff, "--staff", *mailed, *(["--password"] if password else [])]
        for line, typed in ((["check"], ""), (["migrate", "-v0"], ""), (["collectstatic", "--noinput", "-v0"], ""),
                            (add, password)):  # fmt: skip
            done = subprocess.run(
                [*_MANAGE, *line], env=environment, input=typed, capture_output=True, text=True, check=False
            )
            if done.returncode:
                why = next((text for text in reversed(done.stderr.strip().split("\n")) if text), "it says nothing")
                raise CommandError(f"`manage.py {line[0]}` failed with these answers; no file was written. {why}")

    def _say_what_next(self, path: Path, answers: Answers) -> None:
        self.stdout.write(f"{path} is written (mode 0600), the database is ready, {answers.staff} is staff.")
        if answers.database:
            self.stdout.write(f"Start web, worker and beat with GATEHOUSE_ENV_FILE={path} (docs/operators.md).")
        else:
            self.stdout.write(f"Start it: GATEHOUSE_ENV_FILE={path} make run")
        self.stdout.write("Then labs and their people (manage.py import_labs), the policy (on the page AUP), and jobs "
                          "(manage.py ingest_jobs): docs/operators.md.")  # fmt: skip
