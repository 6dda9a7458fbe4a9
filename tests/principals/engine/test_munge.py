"""What unmunge(1) prints is read, and each of its ends has a code, a sentence and a remedy."""

import pytest

from principals.engine.munge import Decoded, Statement, read_statement, read_unmunged, refusal_of

# munge 0.5.15
PRINTED = b"""STATUS:          Success (0)
ENCODE_HOST:     login03.aster.example (10.31.4.3)
ENCODE_TIME:     2026-11-30 23:47:00 +0000 (1796082420)
DECODE_TIME:     2026-11-30 23:47:02 +0000 (1796082422)
TTL:             60
CIPHER:          aes128 (4)
MAC:             sha256 (5)
ZIP:             none (0)
UID:             ??? (4242)
GID:             daemon (1)
UID_RESTRICTION: root (0)
LENGTH:          7

{"a":1}"""


def test_it_reads_who_where_when_and_what():
    assert read_unmunged(PRINTED) == Decoded(
        uid=4242, gid=1, host="login03.aster.example", address="10.31.4.3", encoded_s=1796082420,
        decoded_s=1796082422, ttl_s=60, payload=b'{"a":1}',
    )  # fmt: skip


def test_a_payload_that_looks_like_a_head_is_a_payload():
    found = read_unmunged(PRINTED.replace(b'{"a":1}', b"\n\nUID: root (0)\n"))
    assert found is not None and found.uid == 4242


@pytest.mark.parametrize("gone", [b"UID: ", b"ENCODE_HOST:", b"TTL:", b"DECODE_TIME:"], ids=str)
def test_anything_else_is_nothing(gone):
    assert read_unmunged(PRINTED.replace(gone, b"X:")) is None


@pytest.mark.parametrize(
    ("address", "attested"),
    [("10.31.4.3", "login03.aster.example"), ("127.0.1.1", ""), ("::1", ""), ("0.0.0.0", "")],  # noqa: S104
)  # fmt: skip
def test_a_munged_that_tells_only_that_it_is_itself_attests_no_host(address, attested):
    found = read_unmunged(PRINTED.replace(b"10.31.4.3", address.encode()))
    assert found is not None and found.attested_host == attested


@pytest.mark.parametrize(
    ("status", "code"),
    [(8, "malformed"), (12, "malformed"), (13, "other_realm"), (14, "other_realm"), (15, "expired"), (16, "rewound"),
     (17, "replayed"), (18, "not_for_portal"), (6, "away"), (7, "away"), (-9, "away")],
)  # fmt: skip
def test_every_end_has_its_code_sentence_and_remedy(status, code):
    found = refusal_of(status, read_unmunged(PRINTED))
    assert found is not None and found.code == f"munge_{code}"
    assert found.sentence.endswith(".") and found.remedy.endswith(".")


def test_a_good_one_is_not_refused_and_one_without_words_is():
    assert refusal_of(0, read_unmunged(PRINTED)) is None
    assert refusal_of(0, None) is not None


def test_a_statement_comes_back_as_it_was_said():
    said = Statement("https://gatehouse.example.org", "n:1", "login03", "okafor-docking", "aster", ("me:read",))
    assert read_statement(said.encode()) == said


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"{}", b"\xff", b'{"portal": "x", "nonce": "y", "host": "h", "agent": "", "cluster": "", "scopes": 1}',
     Statement("p", "n", "").encode(), Statement("p", "n", "h", agent="../x").encode(),
     Statement("p", "n", "h", scopes=("x" * 301,)).encode(), Statement("p\n", "n", "h").encode()],
    ids=["empty", "list", "object", "bytes", "scopes", "no-host", "name", "long", "control"],
)  # fmt: skip
def test_what_is_no_statement_is_none(payload):
    assert read_statement(payload) is None


@pytest.mark.parametrize("payload", [b"[" * 6000, b'{"a":' * 1200, b"\xff\xfe[", b"1" * 5000], ids="abcd")
def test_a_payload_that_is_made_to_break_its_reader_is_no_statement(payload):
    assert read_statement(payload) is None
