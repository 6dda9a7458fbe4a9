"""`make run`: the embedded profile in one command."""

import contextlib
import fcntl
import os
import re
import shlex
import socket
import time
from typing import IO, Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from portal.core import disk, stopping
from portal.supervisor.children import Supervisor, embedded_children, simulator
from portal.supervisor.readiness import READY_WITHIN_S, wait_until_ready
from portal.supervisor.static_files import collect_static
from principals.models import Cluster, User


class Command(BaseCommand):
    help = "Migrate, load the demo facility where the database is empty, and run web, worker and beat together."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.EMBEDDED:
            raise CommandError("`run` is for the embedded profile; docs/operators.md shows the services profile.")
        host, port = os.environ.get("HOST") or "127.0.0.1", self._port()
        self._require_free(host, port)
        alone = self._require_alone()
        # Children get the same folder whatever their working directory, and a log that leaves room for what we say.
        os.environ["GATEHOUSE_DATA"] = str(settings.DATA_DIR)
        os.environ.setdefault("GATEHOUSE_URL", _address(host, port))
        os.environ.setdefault("LOG_LEVEL", "WARNING")
        self._say(f"Gatehouse keeps its data in {settings.DATA_DIR}")
        if settings.DATA_DIR.stat().st_mode & 0o077:
            self._say(f"Other users of this host may look into it; forbid it with: chmod 700 '{settings.DATA_DIR}'")
        if words := disk.want_of_room():
            self._say(f"There is little room: {words}.")
        try:
            is_demo = self._prepare()
        except KeyboardInterrupt as error:
            self._say("Stopped before it was ready; the next start begins where nothing is half done.")
            raise SystemExit(stopping.status_of(error)) from None
        status = self._serve(host, port, is_demo=is_demo)
        alone.close()
        # All is closed and said. Taking the interpreter down would keep people waiting for up to seconds on a busy
        # machine, and free nothing that the kernel does not.
        os._exit(status)

    def _serve(self, host: str, port: int, *, is_demo: bool) -> int:
        """Run the portal until it is stopped; return the status to end with."""
        supervisor = Supervisor(embedded_children(host=host, port=port), say=self._say)
        try:
            supervisor.start()
            if wait_until_ready(supervisor, host, port):
                self._welcome(host, port, is_demo=is_demo)
            elif not supervisor.stopping:
                self._say(f"Not ready after {READY_WITHIN_S} s; see what web and worker say above. Ctrl-C stops it.")
            # Last, so that on a small machine it takes nothing from those whom people wait for.
            if is_demo and os.environ.get("DEMO") != "0":
                supervisor.add(simulator())
            # Whoever closes the last connection writes the journal into the database: one of the children, not we.
            connection.close()
            status = supervisor.watch()
        finally:
            supervisor.stop()
        self._say("Stopped; nothing was lost.")
        return status

    def _say(self, text: str) -> None:
        # Where the terminal is gone, the portal goes on.
        with contextlib.suppress(OSError):
            self.stdout.write(text)
            self.stdout.flush()

    def _port(self) -> int:
        text = os.environ.get("PORT") or "8000"
        if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
            raise CommandError(f"PORT is {text!r}; it must be a number from 1 to 65535.")
        return int(text)

    def _require_free(self, host: str, port: int) -> None:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                other = port + 1 if 1024 <= port < 65535 else 8000
                command = f"{_said_again()}PORT={other} make run"
                raise CommandError(f"Cannot listen at {host}:{port} ({error.strerror}). Try {command}") from None

    def _require_alone(self) -> IO[bytes]:
        """Lock the data folder until this process ends: two portals would take each other's tasks and schedules."""
        try:
            lock = (settings.DATA_DIR / "run.lock").open("wb")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(
                f"Another portal runs on {settings.DATA_DIR}. Stop it, or point GATEHOUSE_DATA at another folder."
            ) from None
        except OSError as error:
            raise CommandError(
                f"Cannot lock {settings.DATA_DIR / 'run.lock'} ({error.strerror}). Remove what stands there, or point "
                "GATEHOUSE_DATA at another folder."
            ) from None
        return lock

    def _prepare(self) -> bool:
        """Bring database and static files up to date; say whether the database is a demo."""
        try:
            self._migrate()
            collect_static()
            return self._load_demo()
        except (DatabaseError, OSError) as error:
            if disk.is_full(error):
                raise CommandError(
                    f"No room is left where {settings.DATA_DIR} lies. Make some and start again: nothing is half done."
                ) from None
            if isinstance(error, OSError):
                raise
            raise CommandError(
                f"The database in {settings.DATA_DIR} cannot be used ({error}). "
                "Restore it from a backup, or point GATEHOUSE_DATA at another folder."
            ) from None

    def _migrate(self) -> None:
        """Migrate where something is pending: the command itself takes a second even where nothing is."""
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            call_command("migrate", verbosity=0, interactive=False)

    def _load_demo(self) -> bool:
        """Load the demo facility into an empty database; say whether the database is a demo."""
        if Cluster.objects.exists() or User.objects.exists():
            is_demo = Cluster.objects.filter(is_demo=True).exists()
            if is_demo and os.environ.get("DEMO") == "0":
                self._say(
                    "The data there are a demo’s, which stands still. To start empty, set GATEHOUSE_DATA elsewhere."
                )
            return is_demo
        if os.environ.get("DEMO") == "0":
            self._say("Started empty.")
            return False
        self._say("The database is empty: making the demo facility …")
        started = time.monotonic()
        call_command("simulate", stdout=self.stdout)
        self._say(f"The demo facility is ready after {time.monotonic() - started:.0f} s.")
        return True

    def _welcome(self, host: str, port: int, *, is_demo: bool) -> None:
        self._say(f"\nGatehouse is ready at {_address(host, port)}/   (Ctrl-C stops it)")
        if not User.objects.exists():
            self._say(
                f"Nobody can sign in yet. The first person: GATEHOUSE_DATA='{settings.DATA_DIR}' "
                ".venv/bin/python manage.py add_person NAME --staff --password"
            )
        if not is_demo:
            return
        from portal.demo.cast import LOGINS, PASSWORD

        self._say("\nDemo logins, password " + PASSWORD)
        for login, words in LOGINS.items():
            self._say(f"  {login:<10} {words}")


def _said_again() -> str:
    """Return what else was set for this start, as it is typed before a command."""
    said = [(name, os.environ.get(name)) for name in ("GATEHOUSE_DATA", "DEMO", "HOST")]
    return "".join(f"{name}={shlex.quote(value)} " for name, value in said if value)


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
