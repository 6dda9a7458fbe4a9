"""Secrets kept in files of their own, made on first use."""

import contextlib
import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def read_or_make_secret(path: Path) -> str:
    """Return the secret in `path`; make it first (48 random bytes, mode 0600) where the file is missing.

    Errors: `ImproperlyConfigured`, in one sentence, for an empty file or one that cannot be made or read.
    """
    try:
        if not path.exists():
            _make_secret(path)
        secret = path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"The secret in {path} cannot be made or read: {error.strerror}.") from None
    if not secret:
        raise ImproperlyConfigured(f"{path} is empty. Put a secret into it, or remove it to have one made.")
    return secret


def _make_secret(path: Path) -> None:
    """Write a secret under a private name and link it into place.

    Two processes may start at once: so exactly one of them decides, and no reader ever sees half a secret.
    """
    private = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48))
        with contextlib.suppress(FileExistsError):
            os.link(private, path)
    finally:
        private.unlink()
