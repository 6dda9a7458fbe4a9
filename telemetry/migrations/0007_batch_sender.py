from django.db import migrations, models
from django.db.models import CharField, OuterRef, Subquery
from django.db.models.functions import Cast


def fill_senders(apps, schema_editor):
    """Find who sent each batch by the one thing kept of them, their name: a service's first, as audit rows did.

    Whom nobody of that name is left of, and the system itself, is the system.
    """
    batches = apps.get_model("telemetry", "IngestBatch").objects.filter(sender_kind="")
    for kind, model, name in (("service", "ServiceAccount", "name"), ("user", "User", "username")):
        found = apps.get_model("principals", model).objects
        same = found.filter(**{name: OuterRef("sent_by")}).annotate(text=Cast("pk", CharField()))
        named = batches.filter(sent_by__in=found.values(name))
        named.update(sender_kind=kind, sender_id=Subquery(same.values("text")[:1]))
    batches.update(sender_kind="system", sender_id="gatehouse")


class Migration(migrations.Migration):
    dependencies = [
        ("principals", "0001_initial"),
        ("telemetry", "0006_inventory"),
    ]

    operations = [
        migrations.AddField("ingestbatch", "sender_kind", models.CharField(default="", max_length=16), preserve_default=False),
        migrations.AddField("ingestbatch", "sender_id", models.CharField(default="", max_length=64), preserve_default=False),
        migrations.RunPython(fill_senders, migrations.RunPython.noop, elidable=True),
    ]
