import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def fill_owners(apps, schema_editor):
    """Who answered for the agent then: whoever gave it away first afterwards, else who owns it now."""
    acceptances = apps.get_model('policies', 'AupAcceptance')
    handovers = apps.get_model('principals', 'AgentHandover')
    agents = apps.get_model('principals', 'Agent')
    given = (
        handovers.objects.filter(agent=models.OuterRef('agent'), state='done', settled__gte=models.OuterRef('at'))
        .order_by('settled', 'pk').values('giver')[:1]
    )
    acceptances.objects.update(owner=models.Subquery(given))
    owner = agents.objects.filter(pk=models.OuterRef('agent')).values('owner')[:1]
    acceptances.objects.filter(owner=None).update(owner=models.Subquery(owner))


class Migration(migrations.Migration):

    dependencies = [
        ('policies', '0002_aup_versions'),
        ('principals', '0011_registration'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='aupacceptance',
            name='owner',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.RunPython(fill_owners, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='aupacceptance',
            name='owner',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.RemoveConstraint(
            model_name='aupacceptance',
            name='policies_aupacceptance_agent',
        ),
        migrations.AddConstraint(
            model_name='aupacceptance',
            constraint=models.UniqueConstraint(fields=('version', 'agent', 'owner'), name='policies_aupacceptance_owner'),
        ),
    ]
