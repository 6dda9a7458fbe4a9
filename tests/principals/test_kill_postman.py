"""`kill -9` of the postman while the server takes a mail: each goes once, and the one nobody knows of is called so."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import demo
from tests.support import mail as mail_server

pytestmark = [pytest.mark.outside, pytest.mark.one_database]
_TELL = (
    "from django.db import transaction; from tests import factories; from principals import services\n"
    "person = factories.make_user('alice', email='alice@site.example')\n"
    "[services.notify(people=[person.pk], kind='hold_placed', title=f'Stopped {n}') for n in range(4)]"
)
_DELIVER = (
    "from datetime import timedelta; from portal.core import clock; from principals.services.notices import postman\n"
    "from principals.models import NoticeMail\n"
    "with clock.at(clock.now() + timedelta(minutes={minutes})): postman.deliver()\n"
    "print(sorted(NoticeMail.objects.values_list('state', flat=True)))"
)


def test_each_mail_goes_once(tmp_path: Path):
    data = tmp_path / "var"
    demo.empty_folder(data)
    controller, post = mail_server.start()
    given = {
        "GATEHOUSE_SMTP_HOST": "127.0.0.1", "GATEHOUSE_SMTP_PORT": str(controller.port),
        "GATEHOUSE_SMTP_SECURITY": "none", "GATEHOUSE_MAIL_FROM": "gatehouse@site.example",
    }  # fmt: skip
    try:
        demo.manage(data, "shell", "--no-imports", "-c", _TELL, **given)
        postman = subprocess.Popen(
            [sys.executable, "manage.py", "shell", "--no-imports", "-c", _DELIVER.format(minutes=0)],
            cwd=demo.ROOT, env=demo.environment_of(data, **given), stdout=subprocess.DEVNULL,
        )  # fmt: skip

        def kill_at_the_second() -> None:
            if len(post.taken) == 1:
                os.kill(postman.pid, signal.SIGKILL)

        post.before_answer = kill_at_the_second
        assert postman.wait(60) == -signal.SIGKILL
        post.before_answer = lambda: None
        said = [
            demo.manage(data, "shell", "--no-imports", "-c", _DELIVER.format(minutes=minutes), **given).stdout.strip()
            for minutes in (0, 6, 600)
        ]
    finally:
        controller.stop()
    assert said == ["['handed', 'sent', 'sent', 'sent']", *["['sent', 'sent', 'sent', 'unsure']"] * 2]
    assert sorted(post.subjects) == [f"Stopped {number}" for number in range(4)]
    assert len({mail["Message-ID"] for mail in post.taken}) == 4
