"""trust.txt: the line datatrainingallowed, at both places of the file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Fetched, Site, Verdict
from comity.policies.formats import ROBOTS_LINES
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.trust_txt import FORMAT
from comity.policies.formats.trust_txt.grammar import parse
from comity.policies.syntax.lines import MAX_BYTES
from tests.policies.formats.mending import findings_of

pytestmark = pytest.mark.requirement("TRUST-1")

ORIGIN = "https://example.com"
PLACE, OTHER_PLACE = "/trust.txt", "/.well-known/trust.txt"
ALLOW, DENY = Verdict.ALLOW, Verdict.DENY
AGENT = Agent("examplebot")


def training(files: dict[str, bytes | Fetched]) -> tuple[str, str, int]:
    """Return the rule, the path and the line of the reason about training, or ("", "", 0)."""
    decision = Site.from_files(ORIGIN, files).page(AGENT, f"{ORIGIN}/a", body=None).uses["train"]
    reason = next(iter(decision.reasons), None)
    if reason is None or not reason.rule.startswith("trust-txt."):
        return "", "", 0
    assert (decision.verdict is ALLOW) == (reason.rule == "trust-txt.allow")
    path = reason.source.url.removeprefix(ORIGIN)
    return reason.rule.removeprefix("trust-txt."), path, reason.source.line


SENTENCES: list[tuple[bytes, tuple[str, int]]] = [
    # Lines are name=value, and `datatrainingallowed` has the values yes and no.
    (b"datatrainingallowed=no\n", ("disallow", 1)),
    (b"datatrainingallowed=yes\n", ("allow", 1)),
    (b"member=https://a.example/\ndatatrainingallowed=no", ("disallow", 2)),
    (b"member=https://a.example/\r\n\r\ndatatrainingallowed=yes\r\n", ("allow", 3)),
    (b"member=https://a.example/\n", ("", 0)),
    (b"", ("", 0)),
    # `#` begins a comment, at the start of a line and in it.
    (b"# datatrainingallowed=no\n", ("", 0)),
    (b"#\ndatatrainingallowed=no # all of it\n", ("disallow", 2)),
    (b"datatrainingallowed=yes# all of it\n", ("allow", 1)),
    # Several lines, or another value than yes and no, are read as no.
    (b"datatrainingallowed=yes\ndatatrainingallowed=no\n", ("disallow", 2)),
    (b"datatrainingallowed=no\ndatatrainingallowed=yes\n", ("disallow", 1)),
    (b"datatrainingallowed=yes\ndatatrainingallowed=yes\n", ("disallow", 2)),
    (b"datatrainingallowed=maybe\n", ("disallow", 1)),
    (b"datatrainingallowed=\n", ("disallow", 1)),
    (b"datatrainingallowed=yes, with a licence\n", ("disallow", 1)),
    # Readings of docs/trust-txt.md.
    (b"DataTrainingAllowed=NO\n", ("disallow", 1)),
    (b"\xef\xbb\xbf \tdatatrainingallowed = Yes \n", ("allow", 1)),
    (b"data-training-allowed=no\n", ("disallow", 1)),
    (b"data_training_allowed: no\n", ("disallow", 1)),
    (b"data-training-allowed=yes\n", ("", 0)),
    (b"datatrainingallowed: yes\n", ("", 0)),
    (b"datatrainingallowed: yes\ndatatrainingallowed=yes\n", ("allow", 2)),
    (b"xdatatrainingallowed=no\n", ("", 0)),
    (b"<html>\ndatatrainingallowed=no\n", ("", 0)),
    (b"datatrainingallowed=yes\n" + b"#" * MAX_BYTES, ("", 0)),
    (b"datatrainingallowed=no\n" + b"#" * MAX_BYTES, ("disallow", 1)),
]


@pytest.mark.parametrize("place", [PLACE, OTHER_PLACE])
@pytest.mark.parametrize(("text", "expected"), SENTENCES)
def test_sentences(text: bytes, expected: tuple[str, int], place: str) -> None:
    rule, line = expected
    assert training({place: text}) == (rule, place if rule else "", line)


NO, YES = b"datatrainingallowed=no\n", b"datatrainingallowed=yes\n"
DOWN = Fetched(status=503)
PLACES: list[tuple[bytes | Fetched, bytes | Fetched, tuple[str, str, int]]] = [
    (NO, YES, ("disallow", PLACE, 1)),
    (YES, NO, ("disallow", OTHER_PLACE, 1)),
    (YES, YES, ("allow", PLACE, 1)),
    (b"#\n", NO, ("disallow", OTHER_PLACE, 1)),
    # While a file cannot be fetched, it may refuse.
    (DOWN, YES, ("unreachable", PLACE, 0)),
    (YES, DOWN, ("unreachable", OTHER_PLACE, 0)),
    (DOWN, NO, ("disallow", OTHER_PLACE, 1)),
]


@pytest.mark.parametrize(("first", "second", "expected"), PLACES)
def test_two_places(
    first: bytes | Fetched, second: bytes | Fetched, expected: tuple[str, str, int]
) -> None:
    assert training({PLACE: first, OTHER_PLACE: second}) == expected


def test_decided_uses() -> None:
    """A refusal refuses training and the uses that it is a part of, and no request."""
    site = Site.from_files(ORIGIN, {PLACE: NO})
    page = site.page(AGENT, f"{ORIGIN}/a", body=None)
    refused = {
        use
        for use in ("train", "train-ai", "train-genai", "ai", "genai", "tdm", "search", "index")
        if "trust-txt.disallow" in {reason.rule for reason in page.uses[use].reasons}
    }
    assert refused == {"train", "train-ai", "train-genai", "ai", "genai", "tdm"}
    assert site.access(AGENT, f"{ORIGIN}/a").verdict is ALLOW


def test_a_permission_overrides_no_refusal_of_another_format() -> None:
    robots = b"User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n"
    site = Site.from_files(ORIGIN, {"/robots.txt": robots, PLACE: YES})
    decision = site.page(AGENT, f"{ORIGIN}/a", body=None).uses["train"]
    assert (decision.verdict, decision.reasons[0].rule) == (DENY, "content-signal.disallow")


FINDINGS = [
    (NO + b"member=https://a.example/\n# a\n\n", []),
    (NO + b"sozial=https://a.example/\n", ["trust-txt.attribute"]),
    (NO + b"we are members\n", ["trust-txt.line"]),
    (b"datatrainingallowed=never\n", ["trust-txt.value"]),
    (b"datatrainingallowed: yes\n", ["trust-txt.name"]),
    (b"data-training-allowed=no\n", ["trust-txt.name"]),
    (YES + NO, ["trust-txt.repeated"]),
    (b"<html>\nwe are members\n", []),
]


@pytest.mark.parametrize(("text", "rules"), FINDINGS)
def test_findings(text: bytes, rules: list[str]) -> None:
    assert [finding.rule for finding in findings_of(FORMAT, PLACE, text)] == rules


@pytest.mark.parametrize(
    ("robots", "text", "rules"),
    [
        (b"User-agent: *\nAllow: /\n", NO, ["trust-txt.rare"]),
        (b"User-agent: *\nAllow: /\n", YES, []),
        (b"User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n", NO, []),
        (b"User-agent: *\nContent-Usage: train-ai=n\nAllow: /\n", NO, []),
    ],
)
def test_a_refusal_that_few_crawlers_read(robots: bytes, text: bytes, rules: list[str]) -> None:
    files = {
        ORIGIN + "/robots.txt": Fetched(status=200, body=robots),
        ORIGIN + PLACE: Fetched(status=200, body=text),
    }
    assert FORMAT.authoring.check_site
    found = FORMAT.authoring.check_site(SiteFiles(ORIGIN, files, robots_lines=ROBOTS_LINES))
    assert [finding.rule for finding in found] == rules


LINES = st.sampled_from(
    [
        NO,
        YES,
        b"datatrainingallowed=maybe\r",
        b"data-training-allowed: yes\r\n",
        b"# datatrainingallowed=yes\n",
        b"member=https://a.example/\n",
        b"\n",
    ]
)


@given(lines=st.lists(LINES, max_size=8), at=st.integers(0, 8), more=LINES)
def test_one_more_line_never_turns_a_refusal_into_a_permission(
    lines: list[bytes], at: int, more: bytes
) -> None:
    before = parse(b"".join(lines)).training
    lines.insert(at, more)
    after = parse(b"".join(lines)).training
    assert before is None or before.verdict is ALLOW or after is not None
    assert before is None or before.verdict is ALLOW or after.verdict is DENY  # type: ignore[union-attr]


@given(text=st.binary(max_size=200) | st.lists(LINES).map(b"".join), cut=st.booleans())
def test_any_octets_can_be_read(text: bytes, cut: bool) -> None:
    trust = parse(text, cut=cut)
    line = trust.training
    assert line is None or 1 <= line.line <= 1 + text.count(b"\n") + text.count(b"\r")
    if line is not None and line.verdict is ALLOW:
        assert b"datatrainingallowed" in text.lower()
        assert not cut
