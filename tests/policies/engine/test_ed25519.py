"""Signatures by Ed25519: the vectors of RFC 8032, and what another implementation signs."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from policies.engine.ed25519 import is_signed, read_public_key

# RFC 8032, section 7.1: public key, message, signature.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24"
        "655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aee"
        "b00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28d"
        "c027beceea1ec40a",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS, ids=["empty", "one-byte", "two-bytes"])
def test_the_vectors_of_the_standard_hold(key: str, message: str, signature: str) -> None:
    public, said, signed = (bytes.fromhex(text) for text in (key, message, signature))
    assert is_signed(public, said, signed)
    assert not is_signed(public, said + b"x", signed)
    assert not is_signed(public, said, signed[:-1] + bytes([signed[-1] ^ 1]))
    assert not is_signed(public, said, bytes([signed[0] ^ 1]) + signed[1:])


def test_it_agrees_with_another_implementation_and_with_no_other_key() -> None:
    keys = [Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in range(4)]
    publics = [key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw) for key in keys]
    for place, key in enumerate(keys):
        message = b"policy" * place
        signature = key.sign(message)
        assert [is_signed(public, message, signature) for public in publics] == [
            place == other for other in range(len(keys))
        ]


def test_a_signature_with_a_scalar_too_large_is_refused() -> None:
    public, message, signature = (bytes.fromhex(text) for text in VECTORS[1])
    order = 2**252 + 27742317777372353535851937790883648493
    larger = int.from_bytes(signature[32:], "little") + order
    assert not is_signed(public, message, signature[:32] + larger.to_bytes(32, "little"))


@pytest.mark.parametrize("public", [b"", b"\xff" * 32, b"\x02" + b"\0" * 31], ids=["short", "too-large", "off-curve"])
def test_what_is_no_key_signs_nothing(public: bytes) -> None:
    assert not is_signed(public, b"x", bytes.fromhex(VECTORS[0][2]))


def test_a_public_key_is_read_from_pem_and_nothing_else_is() -> None:
    key = Ed25519PrivateKey.from_private_bytes(b"k" * 32).public_key()
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    assert read_public_key(pem) == key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    for wrong in ("", "x", pem.replace("MCow", "MCox"), pem.replace("PUBLIC", "PRIVATE"), pem.replace("\n", " ")):
        with pytest.raises(ValueError, match="key"):
            read_public_key(wrong)
