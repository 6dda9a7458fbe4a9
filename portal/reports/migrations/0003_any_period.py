import calendar
import datetime
from typing import Any

from django.db import migrations, models


def end_months(apps: Any, schema_editor: Any) -> None:
    """Give every row the last day of the month that it was of."""
    for name in ("Report", "Drafting"):
        model = apps.get_model("reports", name)
        for row in model.objects.only("first"):
            first = row.first
            last = first.replace(day=calendar.monthrange(first.year, first.month)[1])
            model.objects.filter(pk=row.pk).update(last=last)


EPOCH = datetime.date(1970, 1, 1)


class Migration(migrations.Migration):
    dependencies = [
        ("reports", "0002_drafting"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="report", name="reports_report_version"),
        migrations.RemoveConstraint(model_name="report", name="reports_report_draft"),
        migrations.RemoveConstraint(model_name="report", name="reports_report_published"),
        migrations.RemoveConstraint(model_name="drafting", name="reports_drafting_month"),
        migrations.RenameField(model_name="report", old_name="month", new_name="first"),
        migrations.RenameField(model_name="drafting", old_name="month", new_name="first"),
        migrations.AddField(
            model_name="report", name="last", field=models.DateField(default=EPOCH), preserve_default=False
        ),
        migrations.AddField(
            model_name="drafting", name="last", field=models.DateField(default=EPOCH), preserve_default=False
        ),
        migrations.AlterModelOptions(
            name="report", options={"ordering": ["-last", "-first", "cluster", "-version"]}
        ),
        migrations.AlterModelOptions(name="drafting", options={"ordering": ["-last", "-first", "cluster"]}),
        migrations.RunPython(end_months, migrations.RunPython.noop),
        migrations.AddField(
            model_name="report", name="approved", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="report", name="approved_by", field=models.CharField(blank=True, default="", max_length=150)
        ),
        migrations.AlterField(
            model_name="report",
            name="state",
            field=models.CharField(
                choices=[
                    ("draft", "Draft"), ("approved", "Approved"), ("published", "Published"),
                    ("superseded", "Superseded"),
                ],
                default="draft",
                max_length=12,
            ),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.CheckConstraint(
                condition=models.Q(("first__lte", models.F("last"))), name="reports_report_days"
            ),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.UniqueConstraint(
                fields=("cluster", "first", "last", "version"), name="reports_report_version"
            ),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["draft", "approved"])),
                fields=("cluster", "first", "last"),
                name="reports_report_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="report",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "published")),
                fields=("cluster", "first", "last"),
                name="reports_report_published",
            ),
        ),
        migrations.AddConstraint(
            model_name="drafting",
            constraint=models.UniqueConstraint(
                fields=("cluster", "first", "last"), name="reports_drafting_period"
            ),
        ),
    ]
