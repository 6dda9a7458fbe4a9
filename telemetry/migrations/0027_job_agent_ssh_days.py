from datetime import timedelta

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Min


def note_jobs(apps, schema_editor):
    """Leave the jobs of registered agents to the sweep of attributions, which finds their agents anew in chunks."""
    sessions, receipts, users, pending = (
        apps.get_model(app, name).objects
        for app, name in (
            ("principals", "AgentSession"), ("telemetry", "JobReceipt"), ("principals", "ClusterUser"),
            ("telemetry", "PendingAttribution"),
        )
    )  # fmt: skip
    firsts = {}
    tied = sessions.exclude(agent=None).order_by().values_list("cluster", "cluster_user")
    for cluster, user, first in tied.annotate(first=Min("started")):
        firsts[cluster, user] = first
    given = receipts.order_by().values_list("cluster", "agent__owner").annotate(first=Min("issued"))
    for cluster, owner, first in given:
        for user in users.filter(cluster=cluster, user=owner).values_list("pk", flat=True):
            firsts[cluster, user] = min(first, firsts.get((cluster, user), first))
    pending.bulk_create(
        pending.model(cluster_id=cluster, cluster_user_id=user, first=first - timedelta(seconds=5))
        for (cluster, user), first in sorted(firsts.items())
    )


class Migration(migrations.Migration):

    dependencies = [
        ('principals', '0008_session_evidence'),
        ('telemetry', '0026_array_index'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='agent',
            field=models.ForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='jobs', to='principals.agent'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('agent__isnull', False)), fields=['agent', 'submit'], name='telemetry_job_agent'),
        ),
        migrations.CreateModel(
            name='SshDay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('host', models.CharField(max_length=100)),
                ('day', models.DateField()),
                ('run', models.UUIDField()),
                ('connections', models.PositiveIntegerField()),
                ('untold', models.PositiveIntegerField()),
                ('keys', models.PositiveIntegerField()),
                ('clients', models.PositiveIntegerField()),
                ('pairs', models.PositiveIntegerField()),
                ('cluster', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='principals.cluster')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('cluster', 'day', 'host', 'run'), name='telemetry_sshday_key')],
            },
        ),
        migrations.RunPython(note_jobs, migrations.RunPython.noop, elidable=True),
    ]
