"""The embedded profile's broker: messages are files in a folder, whole before anybody can see them."""

import json
import os
import uuid
from pathlib import Path
from queue import Empty
from time import monotonic
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem


class Channel(filesystem.Channel):
    """Kombu's channel, but for how a message is written and taken.

    Kombu opens a message's file under its name and then writes it; a worker that looks in between reads an empty
    message and ends. And it takes one by way of the system's temporary folder, which is another disk now and then and
    everybody's: here it stays in the broker's own.
    """

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]
        """Write a message beside its name, then give it the name."""
        name = f"{round(monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        path = Path(self.data_folder_out) / name
        aside = path.with_name(f"{name}.part")
        aside.write_text(json.dumps(payload), encoding="utf-8")
        aside.rename(path)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """Take a queue's oldest message: whoever moves its file has it. Errors: `Empty`."""
        for name in sorted(os.listdir(self.data_folder_in)):  # noqa: PTH208 - asked ten times a second
            if name.partition(".")[2] != f"{queue}.msg":
                continue
            taken = Path(self.processed_folder) / name
            try:
                Path(self.data_folder_in, name).rename(taken)
            except FileNotFoundError:
                continue  # another worker was faster
            payload = json.loads(taken.read_text(encoding="utf-8"))
            if not self.store_processed:
                taken.unlink()
            return payload
        raise Empty


class Transport(filesystem.Transport):
    """Kombu's file transport with our channel."""

    Channel = Channel


def use_whole_files() -> None:
    """Let addresses that begin with `filesystem:` mean this transport."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"
