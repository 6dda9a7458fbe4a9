from django.db import migrations, models


def note_switches(apps, schema_editor):
    """What was pulled before was staff's or InfoSec's."""
    apps.get_model("principals", "Hold").objects.filter(kind="kill_switch").update(placed_as="facility")


class Migration(migrations.Migration):

    dependencies = [
        ('principals', '0013_device_logins'),
    ]

    operations = [
        migrations.AddField(
            model_name='hold',
            name='placed_as',
            field=models.CharField(blank=True, choices=[('owner', 'Its owner'), ('lab', 'The lab'), ('facility', 'The facility')], default='', max_length=8),
        ),
        migrations.RunPython(note_switches, migrations.RunPython.noop),
    ]
