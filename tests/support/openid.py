"""An OpenID Connect provider on loopback, and the settings that name it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from django.test import override_settings
from environ import Env

from portal.core import sign_in
from portal.core.sign_in import SignIn
from tests.support.services import free_port, wait_for_port


def choices(**values: str) -> SignIn:
    """What settings read from such variables; `OIDC_NAME` is GATEHOUSE_OIDC_NAME."""
    env = Env()
    env.ENVIRON = {f"GATEHOUSE_{name}": value for name, value in values.items()}
    return sign_in.read(env, facility="Northgate")


@dataclass(frozen=True)
class Provider:
    """A running provider."""

    port: int

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def tell(self, subject: str, **claims: Any) -> None:
        """Say what it tells of somebody from now on."""
        httpx.put(f"{self.issuer}/users/{subject}", json=claims).raise_for_status()

    def consent(self, address: str, subject: str) -> str:
        """Sign in there as `subject`, as the form that it shows would; return where it leads back to."""
        assert address.startswith(self.issuer)
        answer = httpx.post(address, data={"sub": subject} if subject else {"action": "deny"})
        assert answer.status_code == 302, answer.text
        return answer.headers["Location"]

    @contextmanager
    def set(self, **values: str) -> Iterator[SignIn]:
        """Serve the portal's settings with this provider in them."""
        found = choices(
            OIDC_ISSUER=self.issuer, OIDC_CLIENT_ID="gatehouse", OIDC_CLIENT_SECRET="loopback-only", **values
        )
        providers = {"openid_connect": sign_in.openid_app(found)}
        with override_settings(SIGN_IN=found, SOCIALACCOUNT_PROVIDERS=providers):
            yield found


@contextmanager
def running_provider() -> Iterator[Provider]:
    """Serve a provider, in a process of its own, until the block ends."""
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port, process)
        yield Provider(port)
    finally:
        process.terminate()
        process.wait(10)
