"""The theme is a cookie the server reads; the form works without script."""

import pytest


@pytest.mark.parametrize(
    ("back", "lands"), [("http://testserver/x/", "http://testserver/x/"), ("http://evil.test/", "/")]
)
def test_it_goes_back_to_where_it_was_chosen(client, back, lands):
    answer = client.post("/theme/", {"theme": "dark"}, headers={"referer": back})
    assert answer.status_code == 302 and answer["Location"] == lands
    assert client.cookies["theme"].value == "dark"


def test_it_refuses_other_themes_and_other_methods(client):
    assert client.post("/theme/", {"theme": "pink"}).status_code == 400
    assert client.get("/theme/").status_code == 405


def test_the_server_writes_it_on_the_root(db, client, settings):
    settings.DEBUG = True
    client.cookies["theme"] = "dark"
    assert b'data-theme="dark"' in client.get("/dev/components/").content
