"""Plant the measured cluster into the database that the environment names, and draft the report of its time.

    python -m tests.reports.whole SHARE FOLDER

Leaves `planted.json` and `content.json` in the folder; prints how long each step took, and the memory at its most.
"""

import json
import os
import resource
import sys
import time
from datetime import date
from pathlib import Path


def main() -> int:
    share, folder = float(sys.argv[1]), Path(sys.argv[2])
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    import django

    django.setup()
    from django.core.management import call_command

    from portal.reports import services
    from principals.actors import SYSTEM_ACTOR
    from principals.models import Cluster
    from telemetry.selectors import Period

    call_command("migrate", verbosity=0)
    start = time.perf_counter()
    call_command("simulate", scale="paper", share=share, planted=folder / "planted.json", stdout=sys.stderr)
    told = {"share": share, "planted_s": round(time.perf_counter() - start), "planted_peak_mb": _peak_mb()}
    planted = json.loads((folder / "planted.json").read_text(encoding="utf-8"))
    period = Period(*(date.fromisoformat(planted["period"][name]) for name in ("first", "last")))
    start = time.perf_counter()
    report = services.build_draft(actor=SYSTEM_ACTOR, cluster=Cluster.objects.get(), period=period)
    told |= {"drafted_s": round(time.perf_counter() - start), "peak_mb": _peak_mb()}
    (folder / "content.json").write_text(json.dumps(report.content), encoding="utf-8")
    print(json.dumps(told))  # noqa: T201
    return 0


def _peak_mb() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    sys.exit(main())
