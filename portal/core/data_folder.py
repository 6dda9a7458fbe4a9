"""The folder that holds everything a portal of the embedded profile keeps."""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def prepare_data_folder(path: Path) -> None:
    """Make the folder where it is missing, for its owner alone: it will hold what people ran, and secrets.

    Errors: `ImproperlyConfigured`, in one sentence, where it is of no use."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
    else:
        if os.access(path, os.R_OK | os.W_OK | os.X_OK):
            return
        reason = "its permissions do not let this user write there"
    raise ImproperlyConfigured(
        f"The data folder {path} cannot be used: {reason}. Point GATEHOUSE_DATA at a folder that you may write to."
    )
