"""`make run`: the embedded profile in one command."""

import hashlib
import json
import os
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from portal.supervisor.children import Child, Supervisor, embedded_children
from principals.models import Cluster, User

READY_WITHIN_S = 60


class Command(BaseCommand):
    help = "Migrate, load the demo facility where the database is empty, and run web, worker and beat together."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EMBEDDED:
            raise CommandError("`run` is for the embedded profile; docs/operators.md shows the services profile.")
        port, host = self._port(), os.environ.get("HOST", "127.0.0.1")
        self._require_free(host, port)
        os.environ.setdefault("GATEHOUSE_URL", f"http://{host}:{port}")
        self._say(f"Gatehouse keeps its data in {settings.DATA_DIR}")
        call_command("migrate", verbosity=0, interactive=False)
        self._collect_static()
        is_demo = self._load_demo()
        supervisor = Supervisor(
            embedded_children(host=host, port=port, live_demo=is_demo and os.environ.get("DEMO") != "0"), say=self._say
        )
        supervisor.start()
        try:
            if self._wait_until_ready(supervisor, host, port):
                self._welcome(host, port, is_demo=is_demo)
            status = supervisor.watch()
        finally:
            supervisor.stop()
        self._say("Stopped; nothing was lost.")
        if status:
            raise SystemExit(status)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def _port(self) -> int:
        text = os.environ.get("PORT", "8000")
        if not text.isdigit() or not 0 < int(text) < 65536:
            raise CommandError(f"PORT is {text!r}; it must be a number from 1 to 65535.")
        return int(text)

    def _require_free(self, host: str, port: int) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                raise CommandError(f"{host}:{port} is taken ({error.strerror}). Try PORT={port + 1} make run") from None

    def _collect_static(self) -> None:
        """Collect static files, only where their sources changed since the last time."""
        listing = []
        for finder in finders.get_finders():
            for name, storage in finder.list([]):
                stat = Path(storage.path(name)).stat()
                listing.append((name, stat.st_size, stat.st_mtime_ns))
        stamp = hashlib.sha256(json.dumps(sorted(listing)).encode()).hexdigest()
        stamp_file = Path(settings.STATIC_ROOT) / ".stamp"
        if stamp_file.exists() and stamp_file.read_text() == stamp:
            return
        call_command("collectstatic", verbosity=0, interactive=False, clear=True)
        stamp_file.parent.mkdir(parents=True, exist_ok=True)
        stamp_file.write_text(stamp)

    def _load_demo(self) -> bool:
        """Load the demo facility into an empty database; say whether the database is a demo."""
        if Cluster.objects.exists() or User.objects.exists():
            return Cluster.objects.filter(is_demo=True).exists()
        if os.environ.get("DEMO") == "0":
            self._say("Started empty. Make the first person: .venv/bin/python manage.py createsuperuser")
            return False
        self._say("The database is empty: making the demo facility …")
        started = time.monotonic()
        call_command("simulate", stdout=self.stdout)
        self._say(f"The demo facility is ready after {time.monotonic() - started:.0f} s.")
        return True

    def _wait_until_ready(self, supervisor: Supervisor, host: str, port: int) -> bool:
        web: Child = supervisor.children[0]
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline and not supervisor.stopping:
            if web.process is None or web.process.poll() is not None:
                return False
            try:
                with urllib.request.urlopen(f"http://{host}:{port}/readyz", timeout=2):
                    return True
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        return False

    def _welcome(self, host: str, port: int, *, is_demo: bool) -> None:
        self._say(f"\nGatehouse is ready at http://{host}:{port}/   (Ctrl-C stops it)")
        if not is_demo:
            return
        from portal.demo.cast import LOGINS, PASSWORD

        self._say("\nDemo logins, password " + PASSWORD)
        for login, words in LOGINS.items():
            self._say(f"  {login:<10} {words}")
