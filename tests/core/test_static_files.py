"""Static files carry the headers of every other answer, and are sent whole by either kind of server."""

from pathlib import Path

import pytest
from django.conf import settings as project
from django.test import AsyncClient, AsyncRequestFactory, Client, RequestFactory

from portal.core.static_files import StaticFilesMiddleware

PATH = "/static/portal.css"
SAFETY = ("X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy", "Content-Security-Policy")


@pytest.fixture(autouse=True)
def _from_sources(settings) -> None:  # type: ignore[no-untyped-def]
    settings.WHITENOISE_USE_FINDERS = settings.WHITENOISE_AUTOREFRESH = settings.DEBUG = True


@pytest.fixture
def source() -> bytes:
    return (Path(project.BASE_DIR) / "portal" / "static" / "portal.css").read_bytes()


@pytest.mark.django_db
def test_a_file_has_the_headers_of_a_page() -> None:
    client = Client()
    file, page = client.get(PATH), client.get("/sign-in/")
    assert (file.status_code, page.status_code) == (200, 200)
    for name in SAFETY:
        # The nonce of a page is its own.
        assert file[name].partition(" 'nonce-")[0] == page[name].partition(" 'nonce-")[0], name
    assert file["X-Frame-Options"] == "DENY"
    assert "default-src 'none'" in file["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("method", "headers", "status", "cut"),
    [
        ("GET", {}, 200, slice(None)),
        ("GET", {"range": "bytes=10-29"}, 206, slice(10, 30)),
        ("HEAD", {}, 200, slice(0)),
        ("GET", {"if-modified-since": "Fri, 01 Jan 2100 00:00:00 GMT"}, 304, slice(0)),
    ],
)
@pytest.mark.parametrize("factory", [RequestFactory, AsyncRequestFactory])
def test_a_file_a_part_or_nothing_is_sent_whole(
    source: bytes, factory: type[RequestFactory], method: str, headers: dict[str, str], status: int, cut: slice
) -> None:
    asked = factory().generic(method, PATH, headers=headers)
    # Straight from the middleware: the test client takes the bodies of some answers away itself.
    response = StaticFilesMiddleware()(asked)
    assert (response.status_code, response.content) == (status, source[cut])
    assert response["Cache-Control"] == "max-age=0, public"
    if status != 304:
        assert (response["Content-Type"], response["Content-Length"]) == (
            'text/css; charset="utf-8"', str(len(response.content) or len(source))
        )  # fmt: skip


async def test_an_asgi_server_is_given_no_plain_iterator(source: bytes) -> None:
    response = await AsyncClient().get(PATH)
    assert not response.streaming
    assert response.content == source
