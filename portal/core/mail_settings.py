"""Where the portal's mail goes out, as the environment says it. No address of a server: no mail."""

from dataclasses import dataclass
from email.headerregistry import Address
from email.utils import parseaddr
from typing import Any, Final
from urllib.parse import urlsplit

WAYS: Final = ("none", "starttls", "tls")


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail server, whom mails are from, and how many a person gets in an hour."""

    host: str
    port: int
    security: str
    user: str
    password: str
    sender: str
    per_hour: int

    @property
    def is_on(self) -> bool:
        """Whether mail is sent at all."""
        return bool(self.host)

    @property
    def domain(self) -> str:
        """The domain of the sender: the right side of every Message-ID."""
        return parseaddr(self.sender)[1].rpartition("@")[2]

    @property
    def faults(self) -> list[tuple[str, str]]:
        """What is wrong, each with what would mend it; nothing where there is no mail."""
        if not self.is_on:
            return []
        found = []
        if self.security not in WAYS:
            found.append(("GATEHOUSE_SMTP_SECURITY is no way.", f"Set it to {', '.join(WAYS)}."))
        if not _is_address(self.sender):
            found.append(("GATEHOUSE_MAIL_FROM is no address.", "Set it to gatehouse@your.site."))
        if self.user and self.security == "none" and self.host not in {"localhost", "127.0.0.1", "::1"}:
            found.append(("A password would go to the mail server in the clear.",
                          "Set GATEHOUSE_SMTP_SECURITY to starttls or tls."))  # fmt: skip
        if self.per_hour < 1:
            found.append(("GATEHOUSE_MAILS_PER_HOUR is below one.", "Set it to 1 or more."))
        return found


def _is_address(text: str) -> bool:
    try:
        address = Address(addr_spec=parseaddr(text)[1])
    except (ValueError, IndexError, TypeError):
        return False
    return bool(address.username and address.domain) and text.isprintable()


def read(env: Any, *, base_url: str) -> Mail:
    """Read it from the environment."""
    host = urlsplit(base_url).hostname or "localhost"
    security = env.str("GATEHOUSE_SMTP_SECURITY", default="starttls")
    return Mail(
        host=env.str("GATEHOUSE_SMTP_HOST", default=""),
        port=env.int("GATEHOUSE_SMTP_PORT", default={"tls": 465, "starttls": 587}.get(security, 25)),
        security=security,
        user=env.str("GATEHOUSE_SMTP_USER", default=""),
        password=env.str("GATEHOUSE_SMTP_PASSWORD", default=""),
        sender=env.str("GATEHOUSE_MAIL_FROM", default=f"gatehouse@{host}"),
        per_hour=env.int("GATEHOUSE_MAILS_PER_HOUR", default=6),
    )
