from django.apps import AppConfig


class PrincipalsConfig(AppConfig):
    name = "principals"

    def ready(self) -> None:
        from principals import topics

        topics.register()
