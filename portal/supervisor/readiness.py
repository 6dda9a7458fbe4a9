"""Whether the portal answers yet."""

import time
import urllib.error
import urllib.request

from portal.supervisor.children import Supervisor

READY_WITHIN_S = 60
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - listened on where the operator says so


def wait_until_ready(supervisor: Supervisor, host: str, port: int) -> bool:
    """Wait until `/readyz` answers 200; False where the first child ends, the time is over, or everything stops."""
    name = _ANY_ADDRESS.get(host) or (f"[{host}]" if ":" in host else host)
    deadline = time.monotonic() + READY_WITHIN_S
    web = supervisor.children[0]
    while time.monotonic() < deadline and not supervisor.stopping:
        if web.process is None or web.process.poll() is not None:
            return False
        try:
            with urllib.request.urlopen(f"http://{name}:{port}/readyz", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    return False
