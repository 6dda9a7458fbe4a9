import django.db.models.deletion
import portal.core.clock
from django.conf import settings
from django.db import migrations, models
from django.db.models import F

HOW = [
    ('registration', 'Registering the agent'), ('agent_page', 'The agent’s page'),
    ('aup_page', 'The page of the policy'), ('', 'Not noted'),
]


def count_from_publication(apps, schema_editor):
    """Versions published before there was a grace held agents at once."""
    versions = apps.get_model('policies', 'AupVersion')
    versions.objects.update(effective=F('published'), holds_from=F('published'))


class Migration(migrations.Migration):

    dependencies = [
        ('policies', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='aupversion',
            options={'get_latest_by': 'published', 'ordering': ['-published', '-pk']},
        ),
        migrations.AddField(
            model_name='aupversion',
            name='effective',
            field=models.DateTimeField(default=portal.core.clock.now),
        ),
        migrations.AddField(
            model_name='aupversion',
            name='holds_from',
            field=models.DateTimeField(default=portal.core.clock.now),
        ),
        migrations.AddField(
            model_name='aupacceptance',
            name='how',
            field=models.CharField(blank=True, choices=HOW, default='', max_length=12),
        ),
        migrations.CreateModel(
            name='AupDraft',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source', models.TextField()),
                ('pack', models.CharField(blank=True, default='', max_length=40)),
                ('changed', models.DateTimeField(default=portal.core.clock.now)),
                ('written_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-changed', '-pk'],
            },
        ),
        migrations.CreateModel(
            name='AupPersonAcceptance',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=80)),
                ('at', models.DateTimeField(default=portal.core.clock.now)),
                ('how', models.CharField(blank=True, choices=HOW, default='', max_length=12)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='aup_acceptances', to=settings.AUTH_USER_MODEL)),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='people', to='policies.aupversion')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('version', 'user'), name='policies_auppersonacceptance_user')],
            },
        ),
        migrations.RunPython(count_from_publication, migrations.RunPython.noop),
    ]
