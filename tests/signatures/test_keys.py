"""Private keys in files, and sets of public keys."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import PolicyError
from comity.signatures.directory import key_directory
from comity.signatures.keys import (
    MAX_KEY_FILE,
    MAX_KEYS,
    create_private_key,
    public_jwk,
    read_key_set,
    read_private_key,
    thumbprint,
)
from tests.signatures.vectors import NOW, TEST_JWK, TEST_KEY_PEM, TEST_KEYID, jwk, new_key

pytestmark = pytest.mark.requirement("BOT-1")

PEM = serialization.Encoding.PEM
PKCS8 = serialization.PrivateFormat.PKCS8
OTHER_KEY = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    PEM, PKCS8, serialization.NoEncryption()
)
ENCRYPTED = new_key().private_bytes(PEM, PKCS8, serialization.BestAvailableEncryption(b"secret"))
PLAIN = new_key().private_bytes(PEM, PKCS8, serialization.NoEncryption())
PUBLIC = new_key().public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def own_jwk(key: Ed25519PrivateKey) -> bytes:
    import base64

    private = base64.urlsafe_b64encode(key.private_bytes_raw()).rstrip(b"=").decode()
    return json.dumps(public_jwk(key.public_key()) | {"d": private}).encode()


def written(folder: Path, octets: bytes, mode: int = 0o600) -> Path:
    path = folder / "key"
    path.write_bytes(octets)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("octets", [PLAIN, own_jwk(new_key()), b"\n" + own_jwk(new_key())])
def test_a_key_is_pem_or_a_jwk(octets: bytes, tmp_path: Path) -> None:
    key = read_private_key("COMITY_KEY", written(tmp_path, octets))
    assert key.private_bytes_raw() == new_key().private_bytes_raw()


@pytest.mark.parametrize(
    ("octets", "problem"),
    [
        (b"", "is neither a private key in PEM nor a private JWK"),
        (PUBLIC, "is neither a private key in PEM nor a private JWK"),
        (PLAIN[:60], "is neither a private key in PEM nor a private JWK"),
        (b"{", "is neither a private key in PEM nor a private JWK"),
        (b"{" * 9000, "is neither a private key in PEM nor a private JWK"),
        (jwk(d=None), "is neither a private key in PEM nor a private JWK"),
        (json.dumps(public_jwk(new_key().public_key())).encode(), "is neither a private key"),
        (jwk(d="AA"), "is a private JWK, but not of Ed25519"),
        (jwk(crv="X25519"), "is a private JWK, but not of Ed25519"),
        (OTHER_KEY, "is a private key, but not of Ed25519"),
        (ENCRYPTED, "is encrypted, so it cannot be read without its password"),
        (own_jwk(new_key()).replace(b'"x": "', b'"x": "A'), "is a damaged JWK: its `x` does not"),
        (TEST_KEY_PEM, "is the test key of RFC 9421, which everybody has"),
        (jwk(), "is the test key of RFC 9421, which everybody has"),
        (b"x" * (MAX_KEY_FILE + 1), "octets, so it is no key"),
    ],
)
def test_another_file_is_refused_with_the_reason(
    octets: bytes, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(PolicyError) as error:
        read_private_key("COMITY_KEY", written(tmp_path, octets))
    assert str(error.value).startswith(f"COMITY_KEY `{tmp_path / 'key'}` ")
    assert problem in str(error.value)
    assert str(error.value).endswith("`comity key new FILE` creates one")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777])
def test_a_key_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN, mode)
    with pytest.raises(PolicyError, match=rf"can be read by other users \(mode {mode:04o}\)"):
        read_private_key("COMITY_KEY", path)


def test_a_key_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path, Path("a\0b")):
        with pytest.raises(PolicyError, match=r"cannot be read: .*`comity key new FILE` creates"):
            read_private_key("COMITY_KEY", path)


def test_a_new_key_is_only_for_this_user_and_replaces_no_file(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    before = os.umask(0)
    try:
        key = create_private_key(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert thumbprint(read_private_key("KEY", path).public_key()) == thumbprint(key.public_key())
    octets = path.read_bytes()
    with pytest.raises(PolicyError, match="exists, and may be a key in use"):
        create_private_key(path)
    assert path.read_bytes() == octets
    with pytest.raises(PolicyError, match="cannot be written"):
        create_private_key(tmp_path / "nowhere" / "key.pem")


def test_the_thumbprint_is_that_of_rfc_8037() -> None:
    # RFC 8037 appendix-A.3
    key_set = read_key_set(
        json.dumps(
            {
                "keys": [
                    {
                        "kty": "OKP",
                        "crv": "Ed25519",
                        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
                    }
                ]
            }
        ).encode()
    )
    assert list(key_set) == ["kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"]


OWN = public_jwk(new_key().public_key())
KEYID = OWN["kid"]


@pytest.mark.requirement("BOT-2")
@pytest.mark.parametrize(
    ("entry", "is_read"),
    [
        (OWN, True),
        (OWN | {"kid": "another"}, False),
        ({name: value for name, value in OWN.items() if name != "kid"}, True),
        (OWN | {"use": "enc"}, False),
        (OWN | {"kty": "EC"}, False),
        (OWN | {"x": OWN["x"] + "AA"}, False),
        (OWN | {"x": OWN["x"] + "="}, False),
        (OWN | {"x": 5}, False),
        (OWN | {"nbf": "soon"}, False),
        (OWN | {"exp": [5]}, False),
        ({}, False),
        (5, False),
        ({**TEST_JWK, "kid": TEST_KEYID}, False),  # everybody has its private part
    ],
)
def test_entries_of_a_key_set(entry: object, is_read: bool) -> None:
    keys = read_key_set(json.dumps({"keys": [5, entry]}).encode())
    assert list(keys) == ([KEYID] if is_read else [])


@pytest.mark.requirement("BOT-2")
@pytest.mark.parametrize(
    ("times", "is_valid"),
    [
        ({}, True),
        ({"nbf": NOW, "exp": NOW + 1}, True),
        ({"nbf": NOW + 1}, False),
        ({"exp": NOW}, False),
    ],
)
def test_a_key_is_valid_from_nbf_to_exp(times: dict[str, Any], is_valid: bool) -> None:
    [key] = read_key_set(json.dumps({"keys": [OWN | times]}).encode()).values()
    assert key.is_valid(NOW) is is_valid


@pytest.mark.requirement("BOT-2")
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "it has no list of `keys`"),
        (b'{"keys": {}}', "it has no list of `keys`"),
        (json.dumps({"keys": [OWN] * (MAX_KEYS + 1)}).encode(), "it has 65 keys"),
    ],
)
def test_another_body_is_no_key_set(body: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_key_set(body)


@pytest.mark.requirement("BOT-2")
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.sampled_from(list(OWN.values())),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from([*OWN, "keys", "nbf", "exp"]) | st.text(), inner)
        ),
    )
)
def test_any_key_set_is_read_or_refused(document: object) -> None:
    for whole in (document, {"keys": document}, {"keys": [OWN, document]}):
        try:
            keys = read_key_set(json.dumps(whole).encode())
        except ValueError:
            continue
        assert set(keys) <= {KEYID}


def test_a_directory_has_the_public_parts_of_all_keys() -> None:
    body = key_directory([new_key(1), new_key(2)])
    assert set(read_key_set(body)) == {
        thumbprint(new_key(number).public_key()) for number in (1, 2)
    }
    assert b'"d"' not in body
