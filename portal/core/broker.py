"""The embedded profile's broker: messages are files in a folder, whole before anybody can see them."""

import json
import uuid
from pathlib import Path
from queue import Empty
from time import monotonic
from typing import Any

import structlog
from kombu.transport import TRANSPORT_ALIASES, filesystem

log = structlog.get_logger(__name__)


class Channel(filesystem.Channel):
    """Kombu's channel, but for how its files are written and read.

    Kombu opens a file under its name and then writes it: whoever looks in between, or after a full disk, reads half a
    message or half a table, and ends. What it takes from the queue it moves through the host's shared folder for
    temporary files.
    """

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]
        _write_whole(Path(self.data_folder_out) / f"{round(monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg", payload)

    def _get(self, queue: str) -> Any:  # type: ignore[override]
        """Take the oldest message; what is none stays in the folder of those that were taken. Errors: `Empty`."""
        for path in sorted(Path(self.data_folder_in).iterdir()):
            if path.name.partition(".")[2] != f"{queue}.msg":
                continue
            taken = Path(self.processed_folder) / path.name
            try:
                path.rename(taken)
            except FileNotFoundError:  # somebody else took it
                continue
            payload = self._read(taken)
            if payload is not None:
                taken.unlink()
                return payload
            log.warning("broker_message_damaged", path=str(taken))
        raise Empty

    def _read(self, path: Path) -> Any:
        """Return the message of a file; None where it is none."""
        if path.is_symlink() or not path.is_file():
            return None
        try:
            payload = json.loads(path.read_bytes())
            self.Message(payload, channel=self)  # what it cannot be built from would end the worker
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None
        return payload

    def get_table(self, exchange: str) -> list[Any]:
        """Return what is bound to an exchange; nothing where its file was cut short."""
        try:
            table: list[Any] = super().get_table(exchange)
        except (ValueError, TypeError):
            return []
        return table

    def _queue_bind(self, exchange: str, routing_key: str | None, pattern: str | None, queue: str) -> None:
        """Bind a queue. Without a lock: whoever binds at the same time binds the same."""
        bound, table = (routing_key or "", pattern or "", queue or ""), self.get_table(exchange)
        if bound not in table:
            _write_whole(Path(self.control_folder) / f"{exchange}.exchange", [bound, *table])


def _write_whole(path: Path, content: Any) -> None:
    """Write a file beside its name, then give it the name; leave nothing where that fails."""
    aside = path.with_name(f"{path.name}.{uuid.uuid4()}.part")
    try:
        aside.write_text(json.dumps(content), encoding="utf-8")
        aside.rename(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise


class Transport(filesystem.Transport):
    """Kombu's file transport with our channel."""

    Channel = Channel


def use_whole_files() -> None:
    """Let addresses that begin with `filesystem:` mean this transport."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"
