"""Static files where the web process serves them from."""

import hashlib
import json
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command


def collect_static() -> None:
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
