from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    name = "telemetry"

    def ready(self) -> None:
        from principals.events import sessions_adopted
        from telemetry import services
        from telemetry.topics import register_topics

        register_topics()
        sessions_adopted.connect(services.note_adopted, dispatch_uid="telemetry.note_adopted")
