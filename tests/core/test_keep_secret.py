"""Secrets in files of their own, and what the services profile refuses to start with."""

import resource
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from portal.core import checks
from portal.core.secret_files import read_or_make_secret


def test_a_secret_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "secret_key"
    secret = read_or_make_secret(path)
    assert len(secret) >= 48
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_or_make_secret(path) == secret
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret_key"]


def test_a_secret_that_is_there_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "secret_key"
    path.write_text("chosen by the site\n")
    assert read_or_make_secret(path) == "chosen by the site"


def test_an_empty_secret_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("\n")
    with pytest.raises(ImproperlyConfigured, match="secret_key is empty"):
        read_or_make_secret(tmp_path / "secret_key")


def test_a_full_disk_is_told_in_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(ImproperlyConfigured, match=r"secret_key cannot be made or read: File too large\.$"):
            read_or_make_secret(tmp_path / "secret_key")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_its_place_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "secret_key").mkdir()
    with pytest.raises(ImproperlyConfigured, match="Is a directory"):
        read_or_make_secret(tmp_path / "secret_key")


def test_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    start = threading.Barrier(8)
    found: list[str] = []

    def run() -> None:
        start.wait(10)
        found.append(read_or_make_secret(tmp_path / "secret_key"))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(list(tmp_path.iterdir())) == 1


@pytest.fixture
def services(settings: Settings) -> Settings:
    """A services profile with nothing wrong."""
    settings.EMBEDDED = False
    settings.DEBUG = False
    settings.SECRET_KEY = "s" * 40
    settings.TOKEN_PEPPERS = {1: "p" * 32}
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"}}
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://"}}
    settings.DATABASES["default"]["ENGINE"] = "django.db.backends.postgresql"
    return settings


def found() -> list[str]:
    return [message.id or "" for message in checks.services_profile(None)]


@pytest.fixture
def _engine(settings: Settings) -> Iterator[None]:
    engine = settings.DATABASES["default"]["ENGINE"]
    yield
    settings.DATABASES["default"]["ENGINE"] = engine


def test_a_whole_services_profile_has_no_fault(_engine: None, services: Settings) -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("DEBUG", True, "gatehouse.E001"),
        ("SECRET_KEY", "short", "gatehouse.E002"),
        ("CHANNEL_LAYERS", {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}, "gatehouse.E003"),
        (
            "CACHES",
            {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
            "gatehouse.E004",
        ),
        ("TOKEN_PEPPERS", {}, "gatehouse.E005"),
        ("TOKEN_PEPPERS", {1: "short"}, "gatehouse.E005"),
    ],
)
def test_each_fault_of_a_services_profile_is_named(
    _engine: None, services: Settings, name: str, value: object, fault: str
) -> None:
    setattr(services, name, value)
    assert found() == [fault]


def test_sqlite_is_no_database_for_the_services_profile(_engine: None, services: Settings) -> None:
    services.DATABASES["default"]["ENGINE"] = "django.db.backends.sqlite3"
    assert found() == ["gatehouse.E006"]


def test_the_embedded_profile_needs_none_of_this(settings: Settings) -> None:
    settings.EMBEDDED = True
    settings.TOKEN_PEPPERS = {}
    assert found() == []
