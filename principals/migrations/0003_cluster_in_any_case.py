from django.db import migrations, models
from django.db.models.functions import Lower


def rename_twins(apps, schema_editor):
    """Give clusters that differ from an older one in case alone a name of their own; what they hold stays theirs."""
    clusters = apps.get_model("principals", "Cluster").objects
    taken = set()
    for cluster in clusters.order_by("pk"):
        if cluster.name.lower() in taken:
            cluster.name = f"{cluster.name[:28]}-{cluster.pk}"
            cluster.save(update_fields=["name"])
        taken.add(cluster.name.lower())


class Migration(migrations.Migration):

    dependencies = [
        ('principals', '0002_association_ended'),
    ]

    operations = [
        migrations.RunPython(rename_twins, migrations.RunPython.noop, elidable=True),
        migrations.AddConstraint(
            model_name='cluster',
            constraint=models.UniqueConstraint(Lower('name'), name='principals_cluster_in_any_case'),
        ),
    ]
