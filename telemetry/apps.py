from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    name = "telemetry"

    def ready(self) -> None:
        from portal.core.health import register_metrics
        from principals.events import sessions_adopted
        from telemetry import services
        from telemetry.metrics import intake_metrics
        from telemetry.topics import register_topics

        register_topics()
        register_metrics(intake_metrics)
        sessions_adopted.connect(services.note_adopted, dispatch_uid="telemetry.note_adopted")
