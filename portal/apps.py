from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"

    def ready(self) -> None:
        # Tasks are sent from web, worker and commands alike: each needs the configured Celery app.
        from portal import celery  # noqa: F401
        from portal.dashboard import wiring

        wiring.register()
