from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "portal.webhooks"
    label = "webhooks"

    def ready(self) -> None:
        from portal.core.health import register_metrics
        from portal.webhooks.selectors import metrics

        register_metrics(metrics)
