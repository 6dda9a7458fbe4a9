from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    name = "telemetry"

    def ready(self) -> None:
        from portal.core.health import register_metrics
        from telemetry.metrics import intake_metrics
        from telemetry.topics import register_topics

        register_topics()
        register_metrics(intake_metrics)
