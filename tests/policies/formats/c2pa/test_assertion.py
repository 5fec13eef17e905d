"""Training and Data Mining in C2PA manifests, in files that c2pa-python 0.38.2 signed.

The files have an image of 2 by 2 pixels, an empty page or no frames. The certificate is a test's."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site, Verdict
from comity.policies.formats.c2pa.assertion import (
    ENTRIES,
    MAX_ASSERTION,
    MAX_ASSERTIONS,
    statements,
)
from comity.policies.vocabulary.table import Vocabulary

pytestmark = pytest.mark.requirement("IMG-2")

FILES = Path(__file__).parent / "files"
ORIGIN = "https://example.com"
SITE = Site.from_files(ORIGIN, {"/robots.txt": b"User-agent: *\nAllow: /\n"})
USES = ("train", "train-genai", "tdm", "ai", "search", "index", "ai-input", "present", "preserve")
AGENT = Agent("testbot", uses=USES, defaults=dict.fromkeys(USES, Verdict.ALLOW))
WEBP = b"RIFF1234WEBP"
TRAINING = {"train", "train-genai", "tdm", "ai"}
INFERENCE = {"ai-input", "tdm", "ai"}


def refused(body: bytes, agent: Agent = AGENT, media_type: bytes = b"") -> set[str]:
    headers = [(b"Content-Type", media_type)] if media_type else []
    page = SITE.page(agent, f"{ORIGIN}/a", headers=headers, body=body)
    return {use for use in USES if page.uses[use].verdict is Verdict.DENY}


def told(body: bytes) -> set[tuple[str, str]]:
    return {(statement.rule, statement.location.text) for statement in statements(body)}


def box(kind: bytes, data: bytes) -> bytes:
    return (len(data) + 8).to_bytes(4) + kind + data


def text(value: str) -> bytes:
    """Return a text string of CBOR of at most 255 octets."""
    octets = value.encode()
    if len(octets) < 24:
        return bytes((0x60 + len(octets),)) + octets
    return bytes((0x78, len(octets))) + octets


def cbor(**entries: str) -> bytes:
    """Return the content of an assertion of CAWG."""
    members = [
        text(f"cawg.{name}") + b"\xa1" + text("use") + text(use) for name, use in entries.items()
    ]
    return b"\xa1" + text("entries") + bytes((0xA0 + len(members),)) + b"".join(members)


def assertion(data: bytes, *, label: str = "cawg.training-mining", kind: bytes = b"cbor") -> bytes:
    description = box(b"jumd", b"u" * 16 + b"\3" + label.encode() + b"\0")
    return box(b"jumb", description + box(kind, data))


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.glob("cawg.*")))
def test_files_of_c2pa_python(name: str) -> None:
    body = (FILES / name).read_bytes()
    assert told(body) == {
        ("cawg.not-allowed", "cawg.ai_training: notAllowed"),
        ("cawg.not-allowed", "cawg.ai_generative_training: constrained"),
    }
    assert refused(body) == TRAINING


def test_the_older_assertion_and_one_that_allows() -> None:
    older = (FILES / "c2pa.gif").read_bytes()
    assert told(older) == {("cawg.not-allowed", "c2pa.ai_training: notAllowed")}
    assert refused(older) == TRAINING
    allowed = (FILES / "allowed.gif").read_bytes()
    assert statements(allowed) == ()
    # Without a check of the signature nothing is permitted.
    strict = Agent("testbot", uses=USES)
    assert refused(allowed, strict) == set(USES)


@pytest.mark.parametrize(
    ("entry", "uses"),
    [
        ("data_mining", {*TRAINING, *INFERENCE, "search", "index"}),
        ("ai_training", TRAINING),
        ("ai_generative_training", TRAINING),
        ("ai_inference", INFERENCE),
    ],
)
def test_each_entry(entry: str, uses: set[str]) -> None:
    for use in ("notAllowed", "constrained"):
        assert refused(WEBP + assertion(cbor(**{entry: use}))) == uses
        json = f'{{"entries": {{"cawg.{entry}": {{"use" : "{use}"}}}}}}'.encode()
        assert refused(WEBP + assertion(json, kind=b"json")) == uses
    assert refused(WEBP + assertion(cbor(**{entry: "allowed"}))) == set()


def test_the_uses_of_entries_are_not_mixed_up() -> None:
    data = cbor(ai_training="allowed", ai_inference="notAllowed", data_mining="allowed")
    assert refused(WEBP + assertion(data, label="cawg.training-mining__2")) == INFERENCE
    info = b"\xa2" + text("constraint_info") + text("ask") + text("use") + text("constrained")
    data = b"\xa1" + text("entries") + b"\xa1" + text("cawg.ai_training") + info
    assert refused(WEBP + assertion(data)) == TRAINING
    twice = assertion(cbor(ai_training="allowed")) + assertion(cbor(ai_training="notAllowed"))
    assert refused(WEBP + twice) == TRAINING


@pytest.mark.parametrize(
    "boxes",
    [
        assertion(cbor(ai_training="maybe")),
        assertion(cbor(ai_training="")),
        assertion(b"\xa1" + text("entries") + b"\xa1" + text("cawg.ai_training") + b"\xf6"),
        assertion(cbor(ai_training="allowed"))[:-4],
        assertion(cbor(ai_training="allowed"), kind=b"bidb"),
        assertion(b"\xa0"),
        assertion(b""),
        assertion(cbor(ai_training="allowed") + bytes(MAX_ASSERTION)),
        assertion(cbor(ai_training="allowed")).replace(b"\0\0\0\x2ejumd", b"\xff\xff\xff\xffjumd"),
        assertion(cbor(ai_training="allowed")).replace(b"\0\0\0\x2ejumd", b"\0\0\0\0jumd"),
        assertion(cbor(ai_training="allowed")) * (MAX_ASSERTIONS + 1),
    ],
)
def test_an_assertion_that_cannot_be_read_refuses(boxes: bytes) -> None:
    assert "cawg.unread" in {rule for rule, _ in told(WEBP + boxes)}
    assert refused(WEBP + boxes) >= TRAINING


def test_other_manifests_and_pages_state_nothing() -> None:
    assert statements(WEBP + assertion(cbor(), label="c2pa.actions")) == ()
    assert statements(WEBP + assertion(cbor())) == ()
    quoted = b"<!doctype html><pre>" + assertion(cbor(ai_training="notAllowed"))
    assert refused(quoted) == set()


@pytest.mark.parametrize("media_type", [b"image/x-unknown", b"audio/mpeg", b"video/x-flv"])
def test_the_media_type_alone_tells_a_file_of_media(media_type: bytes) -> None:
    body = b"unknown" + assertion(cbor(ai_training="notAllowed"))
    assert refused(body, media_type=media_type) == TRAINING
    assert refused(body) == set()


def test_a_manifest_in_several_segments_of_jpeg() -> None:
    """Each segment repeats the head of the box, and may cut an entry."""
    boxes = box(b"jumb", assertion(cbor(ai_training="notAllowed")))
    cut = boxes.index(b"notAll") + 3
    parts = [boxes[:cut], boxes[:8] + boxes[cut:]]
    body = b"\xff\xd8"
    for number, part in enumerate(parts, 1):
        data = b"JP\0\1" + number.to_bytes(4) + part
        body += b"\xff\xeb" + (len(data) + 2).to_bytes(2) + data
    assert refused(body + b"\xff\xda") == TRAINING


def test_every_word_of_the_vocabulary_is_stated() -> None:
    words = {f"cawg:{word}" for word in Vocabulary.shipped().words["cawg"].narrows}
    assert words == set(ENTRIES.values())


@pytest.mark.parametrize("name", ["cawg.gif", "cawg.mp4", "cawg.jpg"])
def test_files_that_are_cut_off(name: str) -> None:
    """Nothing raises, and an assertion without its end refuses."""
    body = (FILES / name).read_bytes()
    for end in range(0, len(body), 97):
        assert {rule for rule, _ in told(body[:end])} <= {"cawg.not-allowed", "cawg.unread"}


@given(
    st.sampled_from([WEBP, b"\xff\xd8", b"GIF89a!\xff\x0bC2PA_GIF\1\0\0", b"%PDF-1.7"]),
    st.lists(
        st.one_of(
            st.binary(max_size=30),
            st.sampled_from(
                [
                    b"jumb",
                    b"\0\0\0\x2ejumd" + b"u" * 16 + b"\3cawg.training-mining\0",
                    box(b"cbor", cbor(ai_training="allowed")),
                    cbor(ai_training="notAllowed"),
                    b"\xff\xeb\0\x20JP",
                ]
            ),
        ),
        max_size=10,
    ),
)
def test_any_octets(start: bytes, parts: list[bytes]) -> None:
    body = start + b"".join(parts)
    statements(body)
    refusing = assertion(cbor(ai_training="notAllowed"))
    assert refused(WEBP + refusing + b"".join(parts)) >= TRAINING
