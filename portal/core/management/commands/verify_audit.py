from datetime import timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Min
from django.template.defaultfilters import pluralize

from portal.core import anchors, audit, clock

ANCHORED_WITHIN: Final = timedelta(hours=2)  # beat notes the head hourly; one hour more for a restart


class Command(BaseCommand):
    help = "Seal what is left, prove the audit chain against its anchors, and fail on any fault."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-seal", action="store_true", help="prove only; leave unsealed rows as they are")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["no_seal"]:
            audit.seal_all()
        noted = anchors.read_anchors()
        faults = list(audit.verify(noted))
        for fault in faults[:50]:
            self.stderr.write(f"seq {fault.seq}: {fault.message}")
        if faults:
            raise CommandError(f"The audit chain has {len(faults)} fault{pluralize(faults)}.")
        seq, hashed = audit.head()
        if not seq:
            self.stdout.write("There is nothing to verify: no audit event is sealed yet.")
            return
        self.stdout.write(f"{seq} event{pluralize(seq)} verified, head {hashed[:16]}. {_said_of(len(noted))}")


def _said_of(noted: int) -> str:
    """Say how far the chain is proven by what is kept outside the database."""
    if noted:
        return f"{noted} anchor{pluralize(noted)} agree{pluralize(noted, 's,')}."
    # Not the first event's time: an import or the demo brings events that are older than the portal.
    made = MigrationRecorder.Migration.objects.aggregate(at=Min("applied"))["at"]
    if made is None or made > clock.now() - ANCHORED_WITHIN:
        return "No anchor to compare with yet: beat notes the chain's head outside the database every hour."
    return (
        f"No anchor to compare with, though the head should be noted every hour in {anchors.anchor_file()}: "
        "see that beat runs, and that AUDIT_ANCHOR_FILE names the file it writes."
    )
