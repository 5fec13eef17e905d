"""`comity rule`: the texts of a rule, of the rules with a prefix, and the list of all rules."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from comity.cli import main
from comity.policies.answers.rule import RULES

Print = Callable[..., tuple[int, str, str]]


@pytest.fixture
def rule(capsys: pytest.CaptureFixture[str]) -> Print:
    """Run `comity rule`. Return its exit status, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["rule", *arguments])
        return status, *capsys.readouterr()

    return run


def test_a_rule_is_explained_with_its_reason_its_remedy_and_its_example(rule: Print) -> None:
    entry = RULES["robots.path"]
    assert rule("robots.path") == (
        0,
        f"robots.path error: {entry.summary} [RFC 9309 section-2.2.2]\n\n{entry.why}\n\n"
        f"Fix: {entry.fix}\n\nBad `robots.txt`:\n    User-agent: *\n    Disallow: private/\n\n"
        "Good `robots.txt`:\n    User-agent: *\n    Disallow: /private/\n",
        "",
    )


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("robots.invisible", ["    Disallow: /private<U+200B>/\n"]),
        ("robots.sitemaps", ["Sitemap: https://example.com/sitemap-1.xml` 1,001 times:\n"]),
        ("comity.file-place", ["Bad `tdmrep.json`:", "Good `.well-known/tdmrep.json`:"]),
        ("comity.file-status", ["    HTTP/1.1 503 Service Unavailable\n"]),
        ("robots.disallow", ["robots.disallow refuses: a Disallow line"]),
    ],
)
def test_every_kind_of_example_is_shown(name: str, texts: list[str], rule: Print) -> None:
    status, out, _ = rule(name)
    assert status == 0
    assert [text for text in texts if text not in out] == []


@pytest.mark.parametrize("prefix", ["usage", "usage."])
def test_a_prefix_explains_each_rule_that_begins_with_it(prefix: str, rule: Print) -> None:
    _, out, _ = rule(prefix)
    meant = {name for name in RULES if name.startswith("usage.")}
    assert {line.split(" ")[0] for line in out.splitlines() if line[:6] == "usage."} == meant
    assert "content-usage." not in out


def test_without_a_rule_all_rules_are_listed(rule: Print) -> None:
    status, out, _ = rule()
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()[2:]] == list(RULES)


def test_json_has_all_texts(rule: Print) -> None:
    entry = RULES["robots.rates"]
    example = entry.example
    assert example
    assert json.loads(rule("robots.rates", "--json")[1]) == {
        "version": 1,
        "rules": [
            {
                "rule": "robots.rates",
                "effect": "finding",
                "severity": "warning",
                "summary": entry.summary,
                "spec": entry.spec,
                "url": "https://www.rfc-editor.org/rfc/rfc9309#section-2.2.4",
                "why": entry.why,
                "fix": entry.fix,
                "example": {
                    "bad": {"robots.txt": example.bad},
                    "good": {"robots.txt": example.good},
                    "repeated": "Crawl-delay: 10\n",
                    "times": 1001,
                },
            }
        ],
    }
    assert len(json.loads(rule("--json")[1])["rules"]) == len(RULES)


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("robots.pth", "Write `robots.path`"),
        ("robts", "Write `robots` or `robots-meta`."),
        ("", ""),
        ("nonsense", ""),
        ("\x1b[31m", ""),
    ],
)
def test_an_unknown_rule_is_an_error_that_proposes_similar_ones(
    name: str, similar: str, rule: Print
) -> None:
    status, out, error = rule(name)
    assert (status, out) == (2, "")
    assert error.startswith("comity rule: `")
    assert "is not a rule or the beginning of one." in error
    assert ("Write " in error) is bool(similar)
    assert similar in error
    assert error.endswith("`comity rule` lists all.\n")
    assert "\x1b" not in error
