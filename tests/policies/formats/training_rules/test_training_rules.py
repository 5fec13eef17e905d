"""DisallowAITraining and AllowAITraining lines of robots.txt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.policies import Agent, Site, Verdict
from comity.policies.formats.training_rules import FORMAT
from comity.policies.syntax.lines import MAX_LINE
from tests.policies.formats.mending import findings_of

pytestmark = pytest.mark.requirement("CANEL-1")

ORIGIN = "https://example.com"
ALLOW, DENY = Verdict.ALLOW, Verdict.DENY


def training(robots: bytes, target: str = "/a", token: str = "examplebot") -> tuple[str, int]:
    """Return the rule and the line of the stated reason about training, or ("", 0)."""
    site = Site.from_files(ORIGIN, {"/robots.txt": robots})
    decision = site.page(Agent(token), ORIGIN + target, body=None).uses["train"]
    reason = next(iter(decision.reasons), None)
    if reason is None or not reason.rule.startswith("training-rules."):
        return "", 0
    assert reason.rule == (
        "training-rules.allow" if decision.verdict is ALLOW else "training-rules.disallow"
    )
    return reason.rule.removeprefix("training-rules."), reason.source.line


EVERYBODY = b"User-agent: *\n"
SENTENCES: list[tuple[bytes, str, tuple[str, int]]] = [
    # DisallowAITraining refuses training, AllowAITraining permits it.
    (EVERYBODY + b"DisallowAITraining: /\n", "/a", ("disallow", 2)),
    (EVERYBODY + b"AllowAITraining: /\n", "/a", ("allow", 2)),
    (EVERYBODY + b"disallowaitraining:/a\n", "/ab?c", ("disallow", 2)),
    (EVERYBODY + b"DisallowAITraining: /b\n", "/a", ("", 0)),
    # The longest path decides, and AllowAITraining on a tie (RFC 9309 section-2.2.2).
    (EVERYBODY + b"DisallowAITraining: /\nAllowAITraining: /a\n", "/a", ("allow", 3)),
    (EVERYBODY + b"DisallowAITraining: /a\nAllowAITraining: /\n", "/a", ("disallow", 2)),
    (EVERYBODY + b"DisallowAITraining: /a\nAllowAITraining: /a\n", "/a", ("allow", 3)),
    (EVERYBODY + b"DisallowAITraining: /*.pdf$\n", "/x.pdf", ("disallow", 2)),
    (EVERYBODY + b"DisallowAITraining: /*.pdf$\n", "/x.pdf?y", ("", 0)),
    (EVERYBODY + b"DisallowAITraining: /%61\n", "/a", ("disallow", 2)),
    # Groups are those of RFC 9309.
    (b"User-agent: examplebot\nDisallowAITraining: /\n", "/a", ("disallow", 2)),
    (b"User-agent: otherbot\nDisallowAITraining: /\nAllow: /\n", "/a", ("", 0)),
    (
        EVERYBODY + b"DisallowAITraining: /\nAllow: /\nUser-agent: examplebot\nAllow: /\n",
        "/a",
        ("", 0),
    ),
    # Readings of docs/training-rules.md.
    (EVERYBODY + b"DisallowAITraining:\n", "/a", ("", 0)),
    (EVERYBODY + b"DisallowAITraining: a\n", "/a", ("", 0)),
    (b"DisallowAITraining: /\n" + EVERYBODY + b"AllowAITraining: /\n", "/a", ("disallow", 1)),
    (b"AllowAITraining: /\n" + EVERYBODY + b"Allow: /\n", "/a", ("", 0)),
    (
        b"User-agent: examplebot\nDisallowAITraining: /\nUser-agent: otherbot\nAllow: /\n",
        "/a",
        ("disallow", 2),
    ),
    (
        b"User-agent: otherbot\nDisallowAITraining: /\nUser-agent: examplebot\nAllow: /\n",
        "/a",
        ("disallow", 2),
    ),
    (
        b"User-agent: otherbot\nAllowAITraining: /\nUser-agent: examplebot\nAllow: /\n",
        "/a",
        ("", 0),
    ),
    (
        EVERYBODY + b"DisallowAITraining: /%s\n" % (b"a" * MAX_LINE),
        "/" + "a" * MAX_LINE,
        ("disallow", 2),
    ),
    (EVERYBODY + b"AllowAITraining: /%s\n" % (b"a" * MAX_LINE), "/" + "a" * MAX_LINE, ("", 0)),
    (b"<pre>\n" + EVERYBODY + b"AllowAITraining: /\n", "/a", ("", 0)),
]


@pytest.mark.parametrize(("robots", "target", "expected"), SENTENCES)
def test_sentences(robots: bytes, target: str, expected: tuple[str, int]) -> None:
    assert training(robots, target) == expected


def test_decided_uses() -> None:
    """Training rules decide uses of training, and refuse uses that training is a part of."""
    site = Site.from_files(ORIGIN, {"/robots.txt": EVERYBODY + b"DisallowAITraining: /\n"})
    page = site.page(Agent("examplebot"), f"{ORIGIN}/a", body=None)
    refused = {
        use
        for use in ("train", "train-ai", "train-genai", "ai", "genai", "tdm", "search", "index")
        if "training-rules.disallow" in {reason.rule for reason in page.uses[use].reasons}
    }
    assert refused == {"train", "train-ai", "train-genai", "ai", "genai", "tdm"}
    assert site.access(Agent("examplebot"), f"{ORIGIN}/a").verdict is ALLOW


def test_permission_of_one_vocabulary_does_not_override_a_refusal() -> None:
    robots = EVERYBODY + b"Content-Signal: ai-train=no\nAllowAITraining: /\nAllow: /\n"
    site = Site.from_files(ORIGIN, {"/robots.txt": robots})
    decision = site.page(Agent("examplebot"), f"{ORIGIN}/a", body=None).uses["train"]
    assert (decision.verdict, decision.reasons[0].rule) == (DENY, "content-signal.disallow")


FINDINGS = [
    (EVERYBODY + b"DisallowAITraining: /\nAllow: /\n", ["training-rules.rare"]),
    (EVERYBODY + b"DisallowAITraining: /\nContent-Usage: train-ai=n\nAllow: /\n", []),
    (b"<pre>\n" + EVERYBODY + b"DisallowAITraining: /\n", []),
    (EVERYBODY + b"DisallowAITraining: a\n", ["training-rules.path"]),
    (b"DisallowAITraining: /\n" + EVERYBODY + b"Allow: /\n", ["training-rules.outside"]),
    (EVERYBODY + b"AllowAITraining: /%s\n" % (b"a" * MAX_LINE), ["training-rules.length"]),
    (EVERYBODY + b"DisallowAITraining: /a\nAllow: /\n", []),
]


@pytest.mark.parametrize(("robots", "rules"), FINDINGS)
def test_findings(robots: bytes, rules: list[str]) -> None:
    signals = b"" if "training-rules.rare" in rules else b"Content-Signal: search=yes\n"
    found = findings_of(FORMAT, "/robots.txt", robots + signals)
    assert [finding.rule for finding in found] == rules


RULES = st.sampled_from(
    [
        b"DisallowAITraining: /a\n",
        b"AllowAITraining: /a/b\n",
        b"AllowAITraining: /\n",
        b"DisallowAITraining: /*c$\n",
        b"User-agent: examplebot\n",
        b"User-agent: *\n",
        b"User-agent: otherbot\n",
        b"Allow: /\n",
        b"\n",
    ]
)


@pytest.mark.parametrize("target", ["/a", "/a/b", "/a/bc", "/c"])
@given(lines=st.lists(RULES, max_size=12), at=st.integers(0, 12))
def test_one_more_refusal_never_permits(lines: list[bytes], at: int, target: str) -> None:
    """A DisallowAITraining line more never turns a refusal of another line into a permission."""
    before = training(b"".join(lines), target)[0]
    lines.insert(at, b"DisallowAITraining: /c\n")
    after = training(b"".join(lines), target)[0]
    assert before == "allow" or after != "allow"


@given(st.binary(max_size=200))
def test_any_bytes(body: bytes) -> None:
    training(EVERYBODY + b"DisallowAITraining: " + body)
    assert training(b"AllowAITraining: " + body)[0] in ("", "disallow")
