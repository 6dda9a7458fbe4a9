from django.apps import AppConfig


class SecurityConfig(AppConfig):
    name = "security"

    def ready(self) -> None:
        from security.topics import register_topics

        register_topics()
