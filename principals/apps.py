from django.apps import AppConfig


class PrincipalsConfig(AppConfig):
    name = "principals"
