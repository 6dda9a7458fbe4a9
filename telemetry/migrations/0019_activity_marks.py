from django.db import migrations, models
from django.db.models import F


def keep_marks(apps, schema_editor):
    """What is out of date stays so."""
    marks = apps.get_model("telemetry", "ActivityDirty").objects
    marks.exclude(cluster_user=None).update(user_key=F("cluster_user_id"))


class Migration(migrations.Migration):

    dependencies = [
        ('telemetry', '0018_activity'),
    ]

    operations = [
        migrations.AddField(
            model_name='activitydirty',
            name='user_key',
            field=models.BigIntegerField(default=0),
        ),
        migrations.RunPython(keep_marks, migrations.RunPython.noop, elidable=True),
        migrations.RemoveConstraint(
            model_name='activitydirty',
            name='telemetry_activitydirty_user',
        ),
        migrations.RemoveConstraint(
            model_name='activitydirty',
            name='telemetry_activitydirty_nodes',
        ),
        migrations.RemoveField(
            model_name='activitydirty',
            name='cluster_user',
        ),
        migrations.AlterField(
            model_name='activitydirty',
            name='stamp',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddConstraint(
            model_name='activitydirty',
            constraint=models.UniqueConstraint(fields=('cluster', 'day', 'user_key'), name='telemetry_activitydirty_key'),
        ),
    ]
