import pytest
from hypothesis import given
from hypothesis import strategies as st

from principals.engine.scopes import SCOPES, default_scopes, grants, refused_scopes, scopes_for
from principals.engine.tokens import (
    TokenDigest,
    TokenKind,
    TokenParts,
    digest_token,
    make_token,
    parse_token,
    verify_token,
)

PEPPERS = {1: b"first-pepper-of-16-bytes", 2: b"second-pepper-of-16-bytes"}


@pytest.mark.parametrize("kind", TokenKind)
def test_a_new_token_parses_back_to_itself(kind):
    token = make_token(kind)
    assert parse_token(token.plain) == token
    assert token.plain.startswith(kind.value + "_")
    assert len(token.plain) == 4 + 12 + 1 + 40


def test_two_tokens_never_share_key_or_secret():
    tokens = [make_token(TokenKind.AGENT) for _ in range(500)]
    assert len({token.key for token in tokens}) == len({token.secret for token in tokens}) == 500


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gha_",
        "ghp_" + "a" * 12 + "." + "b" * 40,
        "gha_" + "a" * 11 + "." + "b" * 40,
        "gha_" + "a" * 12 + "." + "b" * 41,
        "gha_" + "a" * 12 + "b" * 40,
        " gha_" + "a" * 12 + "." + "b" * 40,
        "gha_" + "a" * 12 + "." + "b" * 40 + "\n",
        "gha_" + "a" * 12 + "." + "b" * 39 + "é",
    ],
)
def test_anything_of_another_shape_is_no_token(text):
    assert parse_token(text) is None


@given(st.text(max_size=80))
def test_parsing_never_fails_on_any_text(text):
    parts = parse_token(text)
    assert parts is None or parts.plain == text


def test_the_secret_stays_out_of_repr_and_mask():
    token = make_token(TokenKind.AGENT)
    assert token.secret not in repr(token)
    assert token.secret[-4:] not in token.masked


def test_a_token_verifies_with_the_pepper_it_was_stored_under():
    token = make_token(TokenKind.AGENT)
    old = digest_token(token, {1: PEPPERS[1]})
    assert old.pepper_id == 1
    assert verify_token(token, old, PEPPERS)
    new = digest_token(token, PEPPERS)
    assert new.pepper_id == 2
    assert new.digest != old.digest


def test_a_withdrawn_pepper_ends_its_tokens():
    token = make_token(TokenKind.AGENT)
    assert not verify_token(token, digest_token(token, {1: PEPPERS[1]}), {2: PEPPERS[2]})


def test_a_secret_cannot_move_to_another_key_or_kind():
    token = make_token(TokenKind.AGENT)
    stored = digest_token(token, PEPPERS)
    other_key = TokenParts(token.kind, "A" * 12, token.secret)
    other_kind = TokenParts(TokenKind.SERVICE, token.key, token.secret)
    assert not verify_token(other_key, stored, PEPPERS)
    assert not verify_token(other_kind, stored, PEPPERS)
    assert not verify_token(token, TokenDigest(2, "0" * 64), PEPPERS)


def test_missing_or_short_peppers_are_refused():
    token = make_token(TokenKind.AGENT)
    with pytest.raises(ValueError, match="No token pepper"):
        digest_token(token, {})
    with pytest.raises(ValueError, match="shorter than 16 bytes"):
        digest_token(token, {1: b"short"})


def test_agents_and_services_share_no_scope():
    agent = {scope.name for scope in scopes_for(TokenKind.AGENT)}
    service = {scope.name for scope in scopes_for(TokenKind.SERVICE)}
    assert agent | service == set(SCOPES)
    assert not agent & service
    assert all(name.startswith("ingest:") for name in service)


def test_a_token_is_refused_scopes_of_another_kind_or_unknown_ones():
    assert refused_scopes(["me:read", "ingest:jobs", "root:all"], TokenKind.AGENT) == (
        "ingest:jobs",
        "root:all",
    )
    assert refused_scopes(["ingest:jobs"], TokenKind.SERVICE) == ()


def test_writing_is_never_granted_by_default_or_by_reading():
    assert default_scopes(TokenKind.SERVICE) == frozenset()
    assert "lessons:write" not in default_scopes(TokenKind.AGENT)
    assert "me:read" in default_scopes(TokenKind.AGENT)
    assert not grants(["lessons:read"], "lessons:write")
    assert grants(["lessons:read"], "lessons:read")
