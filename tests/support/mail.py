"""A mail server on loopback that keeps what it takes, and can be told to refuse."""

import email
from collections.abc import Callable
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


class Post:
    """What came, and what is answered: a test may set an answer, or what happens before one."""

    def __init__(self) -> None:
        self.taken: list[EmailMessage] = []
        self.rcpt_answer = "250 OK"
        self.data_answer = "250 OK"
        self.before_answer: Callable[[], None] = lambda: None

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.rcpt_answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.rcpt_answer

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.before_answer()
        if self.data_answer.startswith("250"):
            content: Any = envelope.content
            self.taken.append(email.message_from_bytes(content, policy=default))  # type: ignore[arg-type]
        return self.data_answer

    @property
    def subjects(self) -> list[str]:
        return [str(mail["Subject"]).removeprefix("[Gatehouse] ") for mail in self.taken]


def start(port: int = 0) -> tuple[Controller, Post]:
    """Start one on a free port; the controller's `port` says which. Stop it with `controller.stop()`."""
    import socket

    if not port:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    post = Post()
    controller = Controller(post, hostname="127.0.0.1", port=port)
    controller.start()
    return controller, post
