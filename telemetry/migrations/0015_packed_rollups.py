"""Runtime histograms and hours move into the rows that they belong to.

What is known of histograms is kept. Hours were known only of whole partitions: every day is marked, so that the
refresher finds out whose they are; until it has, what stands for a whole cluster stays.
"""

from django.db import migrations, models

_JOINED = {
    "postgresql": "string_agg(bucket || ':' || jobs, ' ' ORDER BY bucket)",
    "sqlite": "group_concat(bucket || ':' || jobs, ' ')",
}
_PACK = """
    UPDATE telemetry_rollupuser AS u SET runtimes = COALESCE((
        SELECT {joined} FROM (
            SELECT r.bucket AS bucket, SUM(r.jobs) AS jobs
            FROM telemetry_rollupday d JOIN telemetry_rollupruntime r ON r.rollup_id = d.id
            WHERE d.cluster_id = u.cluster_id AND d.day = u.day AND d.cluster_user_id = u.cluster_user_id
            AND d.lab_id = u.lab_id AND d.actor = u.actor AND d.harness = u.harness GROUP BY r.bucket
        ) AS buckets), '')
"""
_MARK = """
    INSERT INTO telemetry_rollupdirty (cluster_id, day, cluster_user_id, stamp)
    SELECT DISTINCT cluster_id, day, cluster_user_id, 0 FROM telemetry_rollupuser WHERE true
    ON CONFLICT (cluster_id, day, cluster_user_id) DO UPDATE SET stamp = telemetry_rollupdirty.stamp + 1
"""


def _pack(apps, schema_editor):
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        cursor.execute(_PACK.format(joined=_JOINED[connection.vendor]))
        cursor.execute(_MARK)


class Migration(migrations.Migration):

    dependencies = [
        ('principals', '0003_cluster_in_any_case'),
        ('telemetry', '0014_rollup_keys_unchecked'),
    ]

    operations = [
        migrations.AddField(
            model_name='rollupday',
            name='hours',
            field=models.TextField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='rollupuser',
            name='runtimes',
            field=models.TextField(blank=True, default=''),
        ),
        migrations.RunPython(_pack, migrations.RunPython.noop),
        migrations.DeleteModel(
            name='RollupRuntime',
        ),
    ]
