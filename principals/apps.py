from django.apps import AppConfig


class PrincipalsConfig(AppConfig):
    name = "principals"

    def ready(self) -> None:
        from django.core.checks import register

        from portal.core.health import register_metrics
        from principals import saml_metadata, topics
        from principals.services.notices.postman import metrics

        register(saml_metadata.check)
        topics.register()
        register_metrics(metrics)
