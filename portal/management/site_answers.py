"""What a site answers at its first start, and the settings that follow."""

import re
import secrets
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from environ import Env

from portal.core import mail_settings, sign_in
from portal.core.errors import Invalid

SIGN_IN = ("password", "openid", "saml", "front")
_DATABASES = ("postgres://", "postgresql://")
_BROKERS = ("redis://", "rediss://")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|[0-9a-f]*:[0-9a-f.:]+")  # never a pattern or a list of several


@dataclass(frozen=True, slots=True)
class Answers:
    """One text an answer; empty where there is none."""

    url: str
    facility: str
    data: str
    database: str
    broker: str
    sign_in: str
    oidc_issuer: str
    oidc_client_id: str
    oidc_secret_file: str
    login_claim: str
    saml_metadata: str
    saml_login: str
    front_header: str
    front_from: str
    smtp_host: str
    mail_from: str
    smtp_security: str
    smtp_port: str
    smtp_user: str
    smtp_password_file: str
    staff: str
    staff_email: str

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]


def environment_of(answers: Answers) -> dict[str, str]:
    """Return the settings, secrets made. Errors: `Invalid`, in one sentence with what would do."""
    values = _of_site(answers) | _of_services(answers) | _of_sign_in(answers) | _of_mail(answers)
    env = Env()
    env.ENVIRON = values
    for what, remedy in sign_in.read(env, facility=answers.facility).faults:
        raise Invalid(what, code="sign_in_half_set", remedy=remedy)
    for what, remedy in mail_settings.read(env, base_url=answers.url).faults:
        raise Invalid(what, code="mail_half_set", remedy=remedy)
    return values


def _of_site(answers: Answers) -> dict[str, str]:
    parts = _address(answers.url)
    _require(answers.staff, "No staff account is named.", "Name the first with --staff.")
    _require(answers.sign_in in SIGN_IN, "That is no way to sign in.", f"Say {', '.join(SIGN_IN)}.")
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else str(parts.hostname)  # as browsers ask for it
    by_proxy = parts.scheme == "https" or answers.sign_in == "front"
    values = {
        "GATEHOUSE_PROFILE": "services" if answers.database else "embedded",
        "GATEHOUSE_URL": answers.url.rstrip("/"),
        "GATEHOUSE_FACILITY": answers.facility,
        "GATEHOUSE_DATA": str(Path(answers.data).resolve()),
        "ALLOWED_HOSTS": ",".join(dict.fromkeys([host, "localhost", "127.0.0.1"])),
        "DEMO": "0",
    }
    # Without a proxy `make run` listens where the address says.
    number = _port_of(parts)
    port = {"PORT": str(number)} if number and not by_proxy and not answers.database else {}
    return values | port | ({"GATEHOUSE_PROXY_COUNT": "1"} if by_proxy else {})


def _address(url: str) -> SplitResult:
    """Read the portal's own address: its host becomes the only one that is answered, and all links begin with it."""
    try:
        parts = urlsplit(url)
        is_plain = not any(each in url for each in "?#@")
    except ValueError:
        parts, is_plain = SplitResult("", "", "", "", ""), False
    named = _HOST.fullmatch(parts.hostname or "")
    _require(parts.scheme in {"http", "https"} and named and is_plain, "The address is none.", "Say https://host.")
    return parts


def _port_of(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        raise Invalid(
            "The address has no such port.", code="answer_invalid", remedy="Say a port from 1 to 65535."
        ) from None


def _of_services(answers: Answers) -> dict[str, str]:
    if not answers.database:
        _require(not answers.broker, "A broker is named without PostgreSQL.", "Give --database too, or no --broker.")
        return {}  # secrets are made in the data folder, at the first start
    _require(answers.database.startswith(_DATABASES), "The database is no postgres:// address.", "Say postgres://….")
    _require(answers.broker.startswith(_BROKERS), "PostgreSQL needs a broker beside it.", "Say --broker redis://….")
    return {
        "DATABASE_URL": answers.database,
        "REDIS_URL": answers.broker,
        "SECRET_KEY": secrets.token_urlsafe(48),
        "TOKEN_PEPPERS": f"1:{secrets.token_urlsafe(48)}",
    }


def _of_sign_in(answers: Answers) -> dict[str, str]:
    if answers.sign_in == "front":
        return {"GATEHOUSE_REMOTE_USER_HEADER": answers.front_header, "GATEHOUSE_REMOTE_USER_FROM": answers.front_from}
    if answers.sign_in == "password":
        return {}
    if answers.sign_in == "saml":
        _require(
            answers.saml_metadata and answers.saml_login,
            "Of SAML the metadata or the attribute with the login name are missing.",
            "Give --saml-metadata (GATEHOUSE_SAML_METADATA) and --saml-login (GATEHOUSE_SAML_LOGIN).",
        )
        return {"GATEHOUSE_SAML_METADATA": answers.saml_metadata, "GATEHOUSE_SAML_LOGIN": answers.saml_login}
    secret = _secret_in(answers.oidc_secret_file, "the client secret", "--oidc-secret-file")
    claim = {"GATEHOUSE_LOGIN_CLAIM": answers.login_claim} if answers.login_claim else {}
    return {
        "GATEHOUSE_OIDC_ISSUER": answers.oidc_issuer,
        "GATEHOUSE_OIDC_CLIENT_ID": answers.oidc_client_id,
        "GATEHOUSE_OIDC_CLIENT_SECRET": secret,
    } | claim


def _of_mail(answers: Answers) -> dict[str, str]:
    if not answers.smtp_host:
        return {}
    values = {
        "GATEHOUSE_SMTP_HOST": answers.smtp_host,
        "GATEHOUSE_SMTP_SECURITY": answers.smtp_security or "starttls",
        "GATEHOUSE_MAIL_FROM": answers.mail_from,
    }
    if port := answers.smtp_port:
        numbered = port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536
        _require(numbered, "The mail server has no such port.", "Say a port from 1 to 65535 with --smtp-port.")
        values |= {"GATEHOUSE_SMTP_PORT": port}
    if not answers.smtp_user:
        return values
    password = _secret_in(answers.smtp_password_file, "the mail server’s password", "--smtp-password-file")
    return values | {"GATEHOUSE_SMTP_USER": answers.smtp_user, "GATEHOUSE_SMTP_PASSWORD": password}


def _secret_in(file: str, what: str, option: str) -> str:
    _require(
        file and Path(file).is_file(),
        f"The file with {what} is not there.",
        f"Put it into a file of mode 0600 and name it with {option}.",
    )
    return Path(file).read_text(encoding="utf-8").strip()


def _require(holds: Any, what: str, remedy: str) -> None:
    if not holds:
        raise Invalid(what, code="answer_invalid", remedy=remedy)
