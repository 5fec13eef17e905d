"""The test vectors of RFC 9421 (Ed25519) and of the drafts of Web Bot Auth."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from http_message_signatures import HTTPMessageSigner, HTTPMessageVerifier, algorithms

from comity.signatures.directory import directory_fields
from comity.signatures.keys import public_x, thumbprint
from comity.signatures.message import KeyAnswer, Outcome, SignedRequest, SignedResponse
from comity.signatures.one_key import OneKey
from comity.signatures.verifier import verify
from tests.signatures.vectors import NOW, TEST_JWK, TEST_KEY_PEM, TEST_KEYID, new_key

KEY = cast(Ed25519PrivateKey, load_pem_private_key(TEST_KEY_PEM, None))

CREATED = 1735689600
CENTURY = 100 * 366 * 24 * 3600
# draft-ietf-webbotauth-httpsig-protocol-00 appendix E.2.1
DICTIONARY = {
    "signature-agent": 'agent2="https://signature-agent.test"',
    "signature-input": 'sig2=("@authority" "signature-agent";key="agent2");created=1735689600'
    f';keyid="{TEST_KEYID}";alg="ed25519";expires=4889289600'
    ';nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA=="'
    ';tag="web-bot-auth"',
    "signature": "sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:",
}
# appendix E.2.2
LEGACY = {
    "signature-agent": '"https://signature-agent.test"',
    "signature-input": 'sig2=("@authority" "signature-agent");created=1735689600'
    f';keyid="{TEST_KEYID}";alg="ed25519";expires=1735693200'
    ';nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg=="'
    ';tag="web-bot-auth"',
    "signature": "sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:",
}


def found(url: str, keyid: str) -> KeyAnswer:
    assert (url, keyid) == (
        "https://signature-agent.test/.well-known/http-message-signatures-directory",
        TEST_KEYID,
    )
    return KeyAnswer(KEY.public_key())


@pytest.mark.requirement("BOT-1", "BOT-2")
def test_the_key_of_rfc_9421_has_the_thumbprint_of_the_draft() -> None:
    assert public_x(KEY.public_key()) == TEST_JWK["x"]
    assert thumbprint(KEY.public_key()) == TEST_KEYID


@pytest.mark.requirement("BOT-2")
@pytest.mark.parametrize("fields", [DICTIONARY, LEGACY])
def test_vectors_of_the_draft(fields: dict[str, str]) -> None:
    request = SignedRequest("GET", "https://example.com/path/to/resource", fields)
    [signature] = verify(request, found, CREATED + 60, max_lifetime=CENTURY)
    assert signature.outcome is Outcome.VERIFIED, signature.problem
    assert signature.url.startswith("https://signature-agent.test/")
    [elsewhere] = verify(
        replace(request, url="https://example.org/"), found, CREATED + 60, max_lifetime=CENTURY
    )
    assert elsewhere.outcome is Outcome.INVALID


@pytest.mark.requirement("BOT-1")
def test_a_request_of_the_draft_is_signed_to_the_octet() -> None:
    request = SignedRequest(
        "GET", "https://example.com/", {"Signature-Agent": DICTIONARY["signature-agent"]}
    )
    HTTPMessageSigner(
        signature_algorithm=algorithms.ED25519, key_resolver=OneKey(private=KEY)
    ).sign(
        request,
        key_id=TEST_KEYID,
        created=datetime.fromtimestamp(CREATED, UTC),
        expires=datetime.fromtimestamp(4889289600, UTC),
        nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==",
        label="sig2",
        tag="web-bot-auth",
        covered_component_ids=('"@authority"', '"signature-agent";key="agent2"'),
    )
    assert {name.lower(): value for name, value in request.headers.items()} == DICTIONARY


# RFC 9421 appendix-B.2.6
TEST_REQUEST = {
    "Host": "example.com",
    "Date": "Tue, 20 Apr 2021 02:07:55 GMT",
    "Content-Type": "application/json",
    "Content-Digest": "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:",
    "Content-Length": "18",
}
B_2_6 = {
    "Signature-Input": 'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length")'
    ';created=1618884473;keyid="test-key-ed25519"',
    "Signature": "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
}


class Timeless(HTTPMessageVerifier):
    def validate_created_and_expires(self, *_: Any, **__: Any) -> None:
        """Do nothing: the vector is of 2021."""


@pytest.mark.requirement("BOT-1", "BOT-2")
def test_the_vector_b_2_6_of_rfc_9421() -> None:
    request = SignedRequest(
        "POST", "https://example.com/foo?param=Value&Pet=dog", TEST_REQUEST | B_2_6
    )
    verifier = Timeless(
        signature_algorithm=algorithms.ED25519, key_resolver=OneKey(public=KEY.public_key())
    )
    [result] = verifier.verify(request, max_age=None)
    assert result.label == "sig-b26"
    # It has no tag of Web Bot Auth, so it is no signature of a crawler.
    lower = {name.lower(): value for name, value in request.headers.items()}
    agent = {"signature-agent": 'sig-b26="https://signature-agent.test"'}
    assert verify(replace(request, headers=lower | agent), found, NOW) == ()


# draft-ietf-webbotauth-httpsig-protocol-00 appendix E.2.3
DIRECTORY = (
    b'{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U",'
    b'"x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig"}]}'
)
DIGEST = "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:"
DIRECTORY_SIGNATURE = {
    "Content-Digest": DIGEST,
    "Signature-Input": 'binding=("@authority";req "content-digest");created=1735689600'
    f';expires=4889289600;keyid="{TEST_KEYID}";tag="http-message-signatures-directory"',
    "Signature": "binding=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:",
}


def verify_directory(fields: dict[str, str], body: bytes, *keys: Ed25519PrivateKey) -> None:
    verify_directory_of("https://signature-agent.test", fields, body, *keys)


def verify_directory_of(
    origin: str, fields: dict[str, str], body: bytes, *keys: Ed25519PrivateKey
) -> None:
    url = f"{origin}/.well-known/http-message-signatures-directory"
    response = SignedResponse(200, fields, SignedRequest("GET", url, {}))
    for number, key in enumerate(keys, 1):
        label = f"sig{number}" if "sig1" in fields["Signature"] else "binding"
        verifier = Timeless(
            signature_algorithm=algorithms.ED25519, key_resolver=OneKey(public=key.public_key())
        )
        [result] = verifier.verify(
            response,
            expect_tag="http-message-signatures-directory",
            expect_label=label,
            require_components=('"@authority";req', '"content-digest"'),
            max_age=None,
            body=body,
        )
        assert result.parameters["keyid"] == thumbprint(key.public_key())


@pytest.mark.requirement("BOT-1")
def test_the_signed_directory_of_the_draft() -> None:
    verify_directory(DIRECTORY_SIGNATURE, DIRECTORY, KEY)
    fields = directory_fields(
        DIRECTORY, "https://signature-agent.test", [KEY], created=CREATED, expires=4889289600
    )
    assert fields["Content-Digest"] == DIGEST
    assert fields["Content-Type"] == "application/http-message-signatures-directory+json"
    verify_directory(fields, DIRECTORY, KEY)


@pytest.mark.requirement("BOT-1")
def test_each_key_signs_its_directory() -> None:
    keys = [KEY, new_key(1), new_key(2)]
    fields = directory_fields(
        DIRECTORY, "https://signature-agent.test", keys, created=NOW, expires=NOW + 60
    )
    verify_directory(fields, DIRECTORY, *keys)
