from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "portal.core"
    label = "core"

    def ready(self) -> None:
        from portal.core import checks  # noqa: F401
