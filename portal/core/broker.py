"""The embedded profile's broker: messages are files in a folder, whole before anybody can see them."""

import json
import uuid
from pathlib import Path
from time import monotonic
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem


class Channel(filesystem.Channel):
    """Kombu's channel, but for how a message is written.

    Kombu opens a message's file under its name and then writes it; a worker that looks in between reads an empty
    message and ends.
    """

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]
        """Write a message beside its name, then give it the name."""
        name = f"{round(monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        path = Path(self.data_folder_out) / name
        aside = path.with_name(f"{name}.part")
        aside.write_text(json.dumps(payload), encoding="utf-8")
        aside.rename(path)


class Transport(filesystem.Transport):
    """Kombu's file transport with our channel."""

    Channel = Channel


def use_whole_files() -> None:
    """Let addresses that begin with `filesystem:` mean this transport."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"
