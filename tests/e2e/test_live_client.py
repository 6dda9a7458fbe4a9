"""The live client: keeps its cursor, comes back by itself, falls back to long-poll, and never makes rows jump."""

import json
from pathlib import Path

import pytest
from django.conf import settings

pytestmark = pytest.mark.browser
STATIC = Path(settings.BASE_DIR) / "portal" / "static"
PAGE = """<!doctype html><html lang="en"><head><title>Live</title><script src="/live.js" defer></script>
<script src="/live-jobs.js" defer></script></head><body data-live data-topics="all-jobs:aster" data-cursor="40">
<span data-live-state><i class="dot"></i><b data-live-words></b></span><button data-live-pause>Pause updates</button>
<button id="live-apply" hidden></button><div id="live-results"><table><tbody><tr data-job="aster:7"><td>
<a href="#x">7</a></td></tr></tbody></table></div><ol id="ticker"></ol><p id="say" role="status"></p></body></html>"""
RECORD = """window.seen = []; window.asked = 0; window.htmx = {ajax: () => { window.asked += 1; }};
for (const name of ["event", "resync", "live"]) document.addEventListener("gatehouse:" + name,
  (e) => window.seen.push([name, e.detail]));"""


def event(seq, name="job.started"):
    return {
        "type": "event", "seq": seq, "name": name, "at": "2026-08-03T14:42:07Z", "topics": ["all-jobs:aster"],
        "payload": {"cluster": "aster", "raw_id": 7, "job_id": "7", "text": "started on <b>c1142</b>", "user": "u0421"},
    }  # fmt: skip


def served(path):
    return lambda route: route.fulfill(path=path)


@pytest.fixture
def page(browser):
    opened = browser.new_context().new_page()
    opened.set_default_timeout(10_000)
    opened.sockets = []
    opened.add_init_script(RECORD)
    opened.route("http://live.test/", lambda route: route.fulfill(body=PAGE, content_type="text/html"))
    for name in ("live.js", "live-jobs.js"):
        opened.route(f"http://live.test/{name}", served(STATIC / name))
    yield opened
    opened.context.close()


def connect(page, on_open=lambda socket: None):
    def take(socket):
        page.sockets.append(socket)
        on_open(socket)

    page.route_web_socket("**/ws/events/*", take)
    page.goto("http://live.test/")
    page.wait_for_function("window.gatehouseLive")


def names(page):
    return [name for name, _ in page.evaluate("seen")]


def test_what_happened_before_the_page_was_drawn_ticks_and_marks_nothing(page):
    drawn = PAGE.replace('data-cursor="40"', 'data-cursor="40" data-known="42"')
    drawn = drawn.replace("</tbody>", '<tr data-job="aster:8"><td>8</td></tr></tbody>')
    page.route("http://live.test/", lambda route: route.fulfill(body=drawn, content_type="text/html"))
    later = event(43) | {"payload": event(43)["payload"] | {"raw_id": 8, "job_id": "8"}}
    connect(page, lambda socket: [socket.send(json.dumps(each)) for each in (event(41), event(42), later)])
    page.locator('[data-job="aster:8"].is-fresh').wait_for()
    assert page.locator("#ticker li").count() == 3
    assert page.locator(".is-fresh").count() == 1


def test_it_resumes_at_its_cursor_and_passes_each_event_once(page):
    connect(page, lambda socket: [socket.send(json.dumps(event(seq))) for seq in (41, 42, 42, 41)])
    page.wait_for_function("gatehouseLive.cursor === 42")
    assert "after=40" in page.sockets[0].url and "topics=all-jobs%3Aaster" in page.sockets[0].url
    assert names(page).count("event") == 2
    assert page.locator("[data-live-words]").inner_text() == "connected"


def test_it_comes_back_with_the_cursor_it_had(page):
    connect(page, lambda socket: socket.send(json.dumps({"type": "hello", "seq": 40})))
    page.wait_for_function("gatehouseLive.state === 'live'")
    page.sockets[0].send(json.dumps(event(41)))
    page.wait_for_function("gatehouseLive.cursor === 41")
    page.sockets[0].close()
    page.wait_for_function("gatehouseLive.state === 'reconnecting'")
    assert page.locator("[data-live-words]").inner_text().startswith("reconnecting, showing ")
    page.wait_for_function("gatehouseLive.state === 'live'")
    assert "after=41" in page.sockets[1].url


def test_it_asks_for_the_rows_again_when_its_cursor_is_too_old(page):
    connect(page, lambda socket: socket.send(json.dumps({"type": "resync", "seq": 900})))
    page.wait_for_function("gatehouseLive.cursor === 900 && asked === 1")


def test_a_closed_stream_stays_closed(page):
    connect(page, lambda socket: socket.send(json.dumps({"type": "closed", "code": 4403})))
    page.wait_for_function("gatehouseLive.state === 'closed'")
    page.sockets[0].close()
    page.wait_for_timeout(800)
    assert len(page.sockets) == 1


def test_it_polls_where_sockets_do_not_pass(page):
    polls = []

    def answer(route):
        polls.append(route.request.url)
        route.fulfill(json={"events": [event(41 + len(polls))], "next": 50 + len(polls), "resync": False})

    page.route("**/live/events/*", answer)
    connect(page, lambda socket: socket.close())
    page.wait_for_function("gatehouseLive.cursor >= 52", timeout=15_000)
    assert "after=40" in polls[0] and "after=51" in polls[1]


def test_it_tries_a_socket_again_after_a_while_of_polls(page):
    """Else one restart that took longer than three tries would leave every open page at a request a second."""
    page.add_init_script("const now = Date.now; window.later = 0; Date.now = () => now() + window.later;")
    page.route(
        "**/live/events/*", lambda route: route.fulfill(json={"events": [], "next": 40, "resync": False})
    )  # fmt: skip
    connect(page, lambda socket: socket.close() if len(page.sockets) <= 3 else socket.send('{"type": "hello"}'))
    page.wait_for_function("gatehouseLive.pollsSince", timeout=15_000)
    assert len(page.sockets) == 3
    page.evaluate("window.later = 31000")
    page.wait_for_function("gatehouseLive.socket && gatehouseLive.state === 'live'")
    assert len(page.sockets) == 4
    assert page.evaluate("gatehouseLive.failures") == 0


def test_polls_that_lost_something_ask_for_the_rows_again(page):
    page.route(
        "**/live/events/*", lambda route: route.fulfill(json={"events": [], "next": 900, "resync": True})
    )  # fmt: skip
    connect(page, lambda socket: socket.close())
    page.wait_for_function("gatehouseLive.cursor === 900 && asked >= 1", timeout=15_000)


def test_pause_stops_it_and_resume_catches_up(page):
    connect(page, lambda socket: socket.send(json.dumps({"type": "hello", "seq": 40})))
    page.wait_for_function("gatehouseLive.state === 'live'")
    page.get_by_role("button", name="Pause updates").click()
    assert page.locator("[data-live-words]").inner_text() == "paused"
    page.get_by_role("button", name="Resume updates").click()
    page.wait_for_function("gatehouseLive.state === 'live'")
    assert len(page.sockets) == 2


def test_rows_wait_while_the_pointer_is_in_the_table(page):
    connect(page, lambda socket: socket.send(json.dumps({"type": "hello", "seq": 40})))
    page.wait_for_function("gatehouseLive.state === 'live'")
    page.locator("table").hover()
    page.sockets[0].send(json.dumps(event(41)))
    page.sockets[0].send(json.dumps(event(42)))
    page.get_by_role("button", name="Show 2 changes").wait_for()
    assert page.evaluate("asked") == 0
    page.get_by_role("button", name="Show 2 changes").click()
    page.wait_for_function("asked >= 1")  # the pointer's leaving may ask once, and the button once more


def test_events_are_drawn_as_text(page):
    connect(page, lambda socket: socket.send(json.dumps(event(41))))
    page.wait_for_function("document.querySelector('#ticker li')")
    assert "started on <b>c1142</b>" in page.locator("#ticker li").inner_text()
    assert page.locator("#ticker a").get_attribute("href") == "/jobs/aster/7/"
    page.wait_for_function("asked === 1")


def test_a_flood_of_events_does_not_starve_the_rows(page):
    connect(page, lambda socket: socket.send(json.dumps({"type": "hello", "seq": 40})))
    page.wait_for_function("gatehouseLive.state === 'live'")
    page.evaluate("""() => { let seq = 41; window.flood = setInterval(() => document.dispatchEvent(new CustomEvent(
      "gatehouse:event", {detail: {seq: seq++, name: "job.ended", at: "2026-08-03T14:42:07Z", payload: {}}})),
      50); }""")
    page.wait_for_function("asked >= 2")
    page.evaluate("clearInterval(flood)")
