"""Secrets kept in files of their own, made on first use."""

import os
import secrets
from pathlib import Path


def read_or_make_secret(path: Path) -> str:
    """Return the secret in `path`; make it first (48 random bytes, mode 0600) where the file is missing.

    Two processes may start at once: the file is written under a private name and linked into place, so
    that exactly one of them decides and no reader ever sees half a secret. Errors: `ValueError` for an empty file.
    """
    if not path.exists():
        private = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48))
        try:
            os.link(private, path)
        except FileExistsError:
            pass
        finally:
            private.unlink()
    secret = path.read_text().strip()
    if not secret:
        raise ValueError(f"{path} is empty. Put a secret into it, or remove it to have one made.")
    return secret
