#!/usr/bin/env python3
import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import InterfaceError, OperationalError, ProgrammingError

    from portal.cli.output import writing_carefully
    from portal.core import stopping

    stopping.end_on_sigterm()
    try:
        with writing_carefully():
            execute_from_command_line(sys.argv)
    except KeyboardInterrupt as error:
        if not stopping.is_supervised():
            sys.stderr.write("\nInterrupted.\n")
        sys.exit(stopping.status_of(error))
    except ImproperlyConfigured as error:
        sys.exit(f"Error: {error}")
    except (InterfaceError, OperationalError, ProgrammingError) as error:
        from django.conf import settings

        words = str(error)
        if "no such table" in words or "does not exist" in words:
            where = f"the database of {settings.DATA_DIR}"
            sys.exit(f"Error: {where} is not set up; run manage.py migrate, or set GATEHOUSE_DATA.")
        if settings.DEBUG or isinstance(error, ProgrammingError) or "no such column" in words:
            raise
        # It went away, is locked, has no room: a traceback would tell nothing more of it.
        first = words.partition("\n")[0].rstrip(".")
        sys.exit(f"Error: the database failed: {first}. What is stored stays; once it answers, run this again.")
