"""One attempt against receivers of every kind, over real sockets."""

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from portal.webhooks import posting
from portal.webhooks.hosts import Place
from tests.webhooks.receivers import Receiver, receiving


@contextmanager
def raw(*pieces: bytes, every_s: float = 0.0, hold: bool = False) -> Iterator[Place]:
    """A server that takes one connection and sends pieces, whatever it is asked."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                try:
                    for piece in pieces:
                        connection.sendall(piece)
                        if done.wait(every_s):
                            return
                    if hold:
                        done.wait(30)
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield Place("127.0.0.1", server.getsockname()[1], "/", is_tls=False)
        finally:
            done.set()
            thread.join()


def _post(place: Place, timeout_s: float = 5.0) -> posting.Answer:
    return posting.post(place, {"webhook-id": "m"}, b"{}", timeout_s=timeout_s)


def test_it_posts_body_and_headers():
    with receiving() as receiver:
        answer = posting.post(Place("localhost", receiver.port, "/in?a=b", is_tls=False), {"X-A": "b"}, b'{"a":1}')
    assert answer.is_taken and answer.status == 200
    (got,) = receiver.got
    assert got.body == b'{"a":1}' and got.headers["x-a"] == "b" and got.headers["host"] == f"localhost:{receiver.port}"


def test_a_redirect_is_not_followed():
    with receiving() as other, receiving(Receiver(lambda nth: (302, {"Location": other.address}))) as receiver:
        answer = _post(Place("127.0.0.1", receiver.port, "/", is_tls=False))
    assert (answer.status, answer.is_taken, other.got) == (302, False, [])
    assert answer.words == "It answered 302, a redirect; none is followed."


def test_what_it_asks_to_wait_is_read():
    with raw(b"HTTP/1.1 503 No\r\nX: y\r\nRetry-After:  120\r\n\r\n") as place:
        assert (answer := _post(place)).retry_after_s == 120
    assert answer.words == "It answered 503."


def test_answers_before_the_one_that_counts_are_passed_over():
    with raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\n", b"HTTP/1.1 204 No\r\n\r\n") as place:
        assert _post(place).status == 204


def test_a_body_is_not_read():
    began = time.monotonic()
    with raw(b"HTTP/1.1 200 OK\r\n\r\n", *[b"x" * 65536] * 50, hold=True) as place:
        assert _post(place).is_taken
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("pieces", "words"),
    [((b"",), "It closed the connection without an answer."), ((b"SSH-2.0-OpenSSH\r\n\r\n",), "Its answer is no HTTP."),
     ((b"HTTP/1.1 200 OK\r\n",), "Its answer is no HTTP."), ((b"HTTP/1.1 999 X\r\n\r\n",), "Its answer is no HTTP."),
     ((b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 5000,), "Its answer is no HTTP.")],
)  # fmt: skip
def test_what_is_no_answer_is_said_in_our_words(pieces, words):
    with raw(*pieces) as place:
        answer = _post(place)
    assert answer.status is None and answer.words in (words, "The connection failed.")


def test_a_receiver_that_answers_a_byte_at_a_time_runs_out_of_time():
    with raw(*[b"H"] * 200, every_s=0.05) as place:
        answer = _post(place, timeout_s=0.5)
    assert answer.status is None and answer.words == "No answer within 0 s." and answer.took_s < 2


def test_a_silent_one_too():
    with raw(hold=True) as place:
        assert _post(place, timeout_s=0.3).took_s < 2


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert _post(Place("127.0.0.1", port, "/", is_tls=False)).words == "The connection was refused."


def test_a_name_nobody_knows():
    assert _post(Place("no-such-host.invalid", 443, "/", is_tls=True)).words == "Its host name was not found."


def test_plain_text_where_tls_should_be():
    with raw(b"HTTP/1.1 200 OK\r\n\r\n") as place:
        answer = _post(Place("localhost", place.port, "/", is_tls=True))
    assert answer.words == "No TLS connection could be made."


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "made.pem", folder / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", made]
    subprocess.run([*command, *subject], check=True, capture_output=True)
    return made, key


@contextmanager
def secured(certificate: tuple[Path, Path]) -> Iterator[int]:
    """A receiver that speaks TLS; gives its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            try:
                with context.wrap_socket(connection, server_side=True) as spoken:
                    spoken.recv(65536)
                    spoken.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            except OSError:
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


def test_a_certificate_that_nobody_vouches_for_is_not_accepted(certificate):
    with secured(certificate) as port:
        assert _post(Place("localhost", port, "/", is_tls=True)).words == "Its certificate was not accepted."


@pytest.mark.parametrize(("host", "words"), [("localhost", "Taken, status 200."),
                                             ("127.0.0.1", "Its certificate was not accepted.")])  # fmt: skip
def test_a_certificate_counts_for_its_name_alone(certificate, monkeypatch, host, words):
    monkeypatch.setattr(posting, "_tls", lambda: ssl.create_default_context(cafile=str(certificate[0])))
    with secured(certificate) as port:
        assert _post(Place(host, port, "/", is_tls=True)).words == words


def test_a_public_name_that_leads_here_is_not_connected_to(monkeypatch):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]
    monkeypatch.setattr(posting.socket, "getaddrinfo", lambda *args, **kwargs: found)
    answer = _post(Place("hooks.example.org", 443, "/", is_tls=True))
    assert answer.words == "Its host name leads to an address that no webhook may go to."
