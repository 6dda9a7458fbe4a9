#!/usr/bin/env python3
import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, ProgrammingError

    from portal.cli.output import writing_carefully

    try:
        with writing_carefully():
            execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"Error: {error}")
    except (OperationalError, ProgrammingError) as error:
        if "no such table" not in str(error) and "does not exist" not in str(error):
            raise
        from django.conf import settings

        sys.exit(
            f"Error: the database of {settings.DATA_DIR} is not set up; run manage.py migrate, or set GATEHOUSE_DATA."
        )
