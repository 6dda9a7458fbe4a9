"""System checks: what the services profile refuses to start with."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


def _layer_is_in_memory() -> bool:
    return "InMemory" in settings.CHANNEL_LAYERS["default"]["BACKEND"]


def _cache_is_local() -> bool:
    return "locmem" in settings.CACHES["default"]["BACKEND"]


def _peppers_are_weak() -> bool:
    peppers: dict[int, str] = settings.TOKEN_PEPPERS
    return not peppers or any(len(value) < 32 for value in peppers.values())


@register()
def services_profile(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a services profile that could not be safe or whole."""
    if settings.EMBEDDED:
        return []
    faults = {
        "E001": (settings.DEBUG, "GATEHOUSE_DEBUG is on.", "Unset it."),
        "E002": (len(settings.SECRET_KEY) < 32, "SECRET_KEY is missing or short.", "Set 32 characters or more."),
        "E003": (_layer_is_in_memory(), "The channel layer is in memory.", "Set REDIS_URL."),
        "E004": (_cache_is_local(), "The cache is local to a process.", "Set REDIS_URL."),
        "E005": (_peppers_are_weak(), "TOKEN_PEPPERS is missing or short.", "Set it to `1:<32 random characters>`."),
        "E006": (
            "sqlite" in settings.DATABASES["default"]["ENGINE"],
            "The services profile needs PostgreSQL.",
            "Set DATABASE_URL to a postgres:// address.",
        ),
    }
    return [Error(text, hint=hint, id=f"gatehouse.{code}") for code, (bad, text, hint) in faults.items() if bad]


@register()
def sign_in(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a way to sign in that is half set: it would let nobody in, or somebody as another."""
    return [Error(text, hint=hint, id="gatehouse.E010") for text, hint in settings.SIGN_IN.faults]


@register()
def mail(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Refuse mail that is half set: nobody would be told, or a password would be."""
    return [Error(text, hint=hint, id="gatehouse.E011") for text, hint in settings.MAIL.faults]
