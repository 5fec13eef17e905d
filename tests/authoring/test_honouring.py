"""Who would obey a line: the statements of operators about its directives and crawlers."""

from __future__ import annotations

from pathlib import Path

import pytest

from comity.authoring.explaining import explain
from comity.authoring.honouring import claim, directives_in, honouring_of, lines_of
from comity.authoring.sites import load
from comity.policies import Agent
from comity.policies.formats import FORMATS
from comity.policies.formats.authoring import Directive

BY_NAME = {format_.name: format_ for format_ in FORMATS}


def directive(format_: str, name: str) -> Directive:
    return next(one for one in BY_NAME[format_].authoring.directives if one.name == name)


def sentences(format_: str, name: str, *agents: str, carrier: str = "") -> str:
    about = honouring_of(BY_NAME[format_], directive(format_, name), agents, carrier)
    return " ".join(about.sentences())


@pytest.mark.requirement("IDE-3")
@pytest.mark.parametrize(
    ("format_", "name", "agents", "expected"),
    [
        ("robots", "Disallow", ["GPTBot"], "GPTBot honours `Disallow`, as documented."),
        ("robots", "Disallow", ["gptbot"], "GPTBot honours `Disallow`, as documented."),
        (
            "robots",
            "Disallow",
            ["GPTBot", "CCBot"],
            "CCBot and GPTBot honour `Disallow`, as documented.",
        ),
        (
            "robots",
            "Disallow",
            ["ChatGPT-User"],
            "ChatGPT-User may ignore `Disallow`, as documented.",
        ),
        ("robots", "Crawl-delay", ["Googlebot"], "Googlebot ignores `Crawl-delay`, as documented."),
        (
            "robots",
            "Disallow",
            ["Bytespider"],
            "No statement was found about `Disallow` for `Bytespider`.",
        ),
        (
            "robots",
            "Crawl-delay",
            ["bingbot", "examplebot"],
            "bingbot honours `Crawl-delay`, as documented."
            " No statement was found about `Crawl-delay` for `examplebot`.",
        ),
        (
            "rsl",
            "License",
            [],
            "No reader is known that says that it honours `License`."
            " The last search was on 2026-11-28.",
        ),
        (
            "robots-meta",
            "noimageai",
            [],
            "img2dataset honours `noimageai`, as documented.",
        ),
    ],
)
def test_sentences_tell_the_answers_and_the_silence(
    format_: str, name: str, agents: list[str], expected: str
) -> None:
    assert sentences(format_, name, *agents) == expected


def test_a_line_for_everybody_names_operators_and_the_crawlers_that_may_ignore_it() -> None:
    text = sentences("robots", "Disallow", "*", "GPTBot")
    assert text == sentences("robots", "Disallow")
    assert text.startswith("Ahrefs, Amazon, Anthropic, Apple, Cloudflare and ")
    assert " more honour `Disallow`, as documented." in text
    assert "may ignore `Disallow`" in text
    assert "ignore `Disallow`" in text


def test_readers_of_fields_do_not_obey_elements() -> None:
    assert sentences("robots-meta", "noai", carrier="field").startswith("img2dataset")
    assert sentences("robots-meta", "noai", carrier="meta").startswith("No reader is known")


def test_a_format_without_directives_is_asked_as_a_whole() -> None:
    about = honouring_of(BY_NAME["c2pa"], None)
    assert [*about.sentences()] == ["Adobe Firefly honours the format, as documented."]


def test_links_lead_to_the_sources() -> None:
    about = honouring_of(BY_NAME["robots"], directive("robots", "Crawl-delay"), ["bingbot"])
    [sentence] = about.sentences(lambda one, name: f"{name} <{one.source}>")
    assert sentence.startswith("bingbot <https://blogs.bing.com/webmaster/2012/")


def test_a_claim_has_the_addition_of_the_documentation() -> None:
    about = honouring_of(BY_NAME["robots"], directive("robots", "Crawl-delay"), ["bingbot"])
    [statement] = about.statements
    text = "honours `Crawl-delay`: one page in this time, from 1 to 30 seconds"
    assert claim(statement, about.name) == f"Microsoft {text}"
    assert claim(statement, about.name, is_about_crawlers=True) == f"bingbot {text}"


@pytest.mark.parametrize(
    ("format_", "text", "spec", "names"),
    [
        ("robots", "Disallow: /sitemap/allow", "", ["Disallow"]),
        ("robots", "crawl-delay : 5", "", ["Crawl-delay"]),
        ("robots", "nosuch: /", "", []),
        ("robots-meta", "noai, max-snippet:50", "", ["noai", "max-snippet"]),
        ("robots-meta", '<meta name="robots" content="NOINDEX">', "", ["noindex"]),
        ("ai-txt", "Disallow: *.jpg", "Spawning's ai.txt (docs/ai-txt.md)", ["Disallow"]),
        ("c2pa", "cawg.ai_training", "", []),
        ("trust-txt", "datatrainingallowed=no", "", ["datatrainingallowed"]),
        ("trust-txt", "DataTrainingAllowed : no", "", ["datatrainingallowed"]),
        ("trust-txt", "member=https://a.example/?b=c", "", ["member"]),
        ("robots", "Disallow=/a: b", "", []),
    ],
)
def test_directives_are_found_in_texts(
    format_: str, text: str, spec: str, names: list[str]
) -> None:
    found = directives_in(BY_NAME[format_], text, spec)
    assert [one.name for one in found] == names
    assert all(one.spec == spec for one in found if spec)


@pytest.mark.requirement("IDE-3")
def test_each_deciding_line_of_a_site_has_its_readers(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text(
        "User-agent: *\nContent-Usage: train-ai=n\nCrawl-delay: 5\nDisallow: /private\n\n"
        "User-agent: GPTBot\nUser-agent: Bytespider\nDisallow: /\n",
        "utf-8",
    )
    lines = [*lines_of(explain(load(str(tmp_path)), Agent("examplebot")))]
    told = {(one.citation.text, one.agents): [*one.sentences()] for one in lines}
    assert told["Content-Usage: train-ai=n", ()] == [
        "No reader is known that says that it honours `Content-Usage`."
        " The last search was on 2026-11-28."
    ]
    assert told["Disallow: /", ("Bytespider", "GPTBot")] == [
        "GPTBot honours `Disallow`, as documented.",
        "No statement was found about `Disallow` for `Bytespider`.",
    ]
    assert ("Disallow: /private", ()) in told
    assert told["Crawl-delay: 5", ()][-1].endswith("ignore `Crawl-delay`, as documented.")


def test_the_readers_of_a_page_are_those_of_its_words(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<meta name="robots" content="noai, nosnippet">', "utf-8")
    lines = [*lines_of(explain(load(str(tmp_path)), Agent("examplebot")))]
    told = {
        each.name: [one.who for one in each.statements] for line in lines for each in line.honouring
    }
    assert told == {"noai": [], "nosnippet": ["Apple", "Google", "Microsoft"]}
