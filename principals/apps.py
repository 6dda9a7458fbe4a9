from django.apps import AppConfig


class PrincipalsConfig(AppConfig):
    name = "principals"

    def ready(self) -> None:
        from portal.core.health import register_metrics
        from principals import topics
        from principals.services.notices.postman import metrics

        topics.register()
        register_metrics(metrics)
