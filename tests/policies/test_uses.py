"""The statements of files, header fields and markup, combined into decisions about uses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files as package_files
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from comity.policies import Agent, Fetched, Page, Reason, Site, Source, UseDecision, Verdict
from comity.policies.agent import Arrangement
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.vocabulary.preferences import Preferences
from comity.policies.vocabulary.statement import Location, Statement
from comity.policies.vocabulary.table import Vocabulary
from tests.selection import examples, one_in

VALIDATOR = Draft202012Validator(
    json.loads(package_files("comity.policies").joinpath("permissions.schema.json").read_text())
)
ORIGIN = "https://example.com"
URL = f"{ORIGIN}/news/a.html"
AGENT = Agent("testbot", uses=("train",))
NOW = datetime(2026, 11, 21, tzinfo=UTC)
GROUP = "User-agent: *\n"
TDMREP, LICENSE = "/.well-known/tdmrep.json", "/license.xml"
LINK = '</license.xml>; rel="license"; type="application/rsl+xml"'


class Case(NamedTuple):
    """A site and a response."""

    robots: Sequence[str] = ()  # lines of its group for everybody
    files: Mapping[str, str] = {}
    fields: Sequence[tuple[str, str]] = ()
    markup: Sequence[str] = ()
    resources: Mapping[str, str] = {}

    @property
    def site(self) -> Site:
        robots = GROUP + "\n".join(self.robots)
        return Site.from_files(
            ORIGIN,
            {path: text.encode() for path, text in {"/robots.txt": robots, **self.files}.items()},
        )

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return [(name.encode(), value.encode()) for name, value in self.fields]

    def page(self, agent: Agent = AGENT, url: str = URL, **more: Any) -> Page:
        body = "\n".join(["<html><head>", *self.markup, "</head></html>"]).encode()
        had = {
            ORIGIN + path: Fetched(status=200, body=text.encode())
            for path, text in self.resources.items()
        }
        response: dict[str, Any] = {
            "headers": self.headers,
            "body": body,
            "resources": had,
            "now": NOW,
        }
        return self.site.page(agent, url, **response | more)


def rsl(terms: str, url: str = "/") -> str:
    return (
        f'<rsl xmlns="https://rslstandard.org/rsl"><content url="{url}"><license>{terms}'
        f"</license></content></rsl>"
    )


def permits(*words: str) -> str:
    return f'<permits type="usage">{" ".join(words)}</permits>'


def prohibits(*words: str) -> str:
    return f'<prohibits type="usage">{" ".join(words)}</prohibits>'


def script(terms: str) -> str:
    return f'<script type="application/rsl+xml">{rsl(terms)}</script>'


def meta(name: str, content: str) -> str:
    return f'<meta name="{name}" content="{content}">'


def acap(*fields: str) -> list[str]:
    return ["", "ACAP-crawler: *", *(f"ACAP-{field}" for field in fields)]


def reservation(value: int, location: str = "/") -> dict[str, str]:
    return {TDMREP: json.dumps([{"location": location, "tdm-reservation": value}])}


def describe(decision: UseDecision) -> str:
    """Return e.g. "deny usage.disallow usage.allow": the verdict and the rules of the reasons.

    A "?" after the verdict means that no source states it."""
    rules = " ".join(reason.rule for reason in decision.reasons)
    return f"{decision.verdict.value}{'' if decision.stated else '?'} {rules}"


# Joins

NO_INDEX = Case(["usage: search=y", "", "ACAP-crawler: *", "ACAP-disallow-index: /"])
NOINDEX = Case(["usage: search=y"], markup=[meta("robots", "noindex")])
JOINS = [
    # Each source alone
    ("silence", Case(), "train", "deny? comity.default"),
    ("permission", Case(["usage: ai=y"]), "train", "allow usage.allow"),
    ("refusal", Case(["usage: ai=n"]), "train", "deny usage.disallow"),
    # PREF-4, USE-7: within a vocabulary any refusal refuses, and otherwise any permission permits
    (
        "line-field",
        Case(["usage: ai=y"], fields=[("Usage-Pref", "ai=n")]),
        "train",
        "deny usage.disallow",
    ),
    (
        "field-line",
        Case(["usage: ai=n"], fields=[("Usage-Pref", "ai=y")]),
        "train",
        "deny usage.disallow",
    ),
    (
        "field-unknown",
        Case(["usage: ai=y"], fields=[("Usage-Pref", "search=n")]),
        "train",
        "allow usage.allow",
    ),
    (
        "permission-elsewhere",
        Case(["usage: tdm=y"], fields=[("Usage-Pref", "ai=y")]),
        "train",
        "allow usage.allow",
    ),
    (
        "each-statement",
        Case(["content-usage: bots=n"], fields=[("Content-Usage", "search=y")]),
        "search",
        "deny content-usage.disallow usage.allow",
    ),
    (
        "one-string",
        Case(["usage: tdm=n"], fields=[("Usage-Pref", "search=y")]),
        "search",
        "allow usage.allow",
    ),
    (
        "signal-field",
        Case(["content-signal: ai-train=yes"], fields=[("Content-Signal", "ai-train=no")]),
        "train",
        "deny content-signal.disallow",
    ),
    # MEET-3: the vocabularies that decide come first, and the reasons of all are kept
    (
        "two-permit",
        Case(["usage: ai=y", "content-signal: ai-train=yes"]),
        "train",
        "allow usage.allow content-signal.allow",
    ),
    (
        "one-refuses",
        Case(["usage: ai=y", "content-signal: ai-train=no"]),
        "train",
        "deny content-signal.disallow usage.allow",
    ),
    (
        "two-refuse",
        Case(["usage: ai=n", "content-usage: train-ai=n", "content-signal: ai-train=yes"]),
        "train",
        "deny usage.disallow content-usage.disallow content-signal.allow",
    ),
    (
        "markup-refuses",
        Case(["usage: ai=y"], markup=[meta("robots", "noai")]),
        "train",
        "deny robots-meta.disallow usage.allow",
    ),
    ("acap-refuses", NO_INDEX, "index", "deny acap.disallow usage.allow"),
    # MEET-4: a related refusal of another vocabulary refuses, a related permission does not permit
    (
        "related-refuses",
        Case(["usage: ai=y"], reservation(1)),
        "train",
        "deny tdmrep.reserved usage.allow",
    ),
    ("related-permits-nothing", Case(files=reservation(0)), "train", "deny? comity.default"),
    ("acap-index-is-search", NO_INDEX, "search", "deny acap.disallow usage.allow"),
    ("noindex-is-search", NOINDEX, "search", "deny robots-meta.disallow usage.allow"),
    # Within a vocabulary the nearest word decides
    ("nearest-permits", Case(["usage: tdm=n, ai=y"]), "ai", "allow usage.allow"),
    ("nearest-refuses", Case(["usage: tdm=y, ai=n"]), "genai", "deny usage.disallow"),
    ("more-general", Case(["usage: tdm=n"]), "genai", "deny usage.disallow"),
    ("not-more-special", Case(["usage: search=n"]), "ai", "deny? comity.default"),
    # A word of one vocabulary is not a word of another
    (
        "own-words",
        Case(["content-signal: train-ai=no", "usage: ai-train=n"]),
        "train",
        "deny? comity.default",
    ),
]


@pytest.mark.requirement("MEET-3", "MEET-4", "PREF-4", "USE-7", "WHY-1")
@pytest.mark.parametrize(
    ("case", "use", "want"), one_in(2, [row[1:] for row in JOINS]), ids=[row[0] for row in JOINS]
)
def test_joins(case: Case, use: str, want: str) -> None:
    assert describe(case.page().uses[use]) == want


@pytest.mark.requirement("MEET-3")
def test_restrictions_of_all_that_permit_hold_together() -> None:
    acap = ["", "ACAP-crawler: *", "ACAP-allow-index: / time-limit=until-2030-01-01"]
    acap += [
        "ACAP-allow-present: / prohibited-modification=format",
        "ACAP-allow-present-snippet: / max-length=10-words",
    ]
    page = Case(
        acap,
        markup=[
            meta("robots", "notranslate, max-snippet:50, unavailable_after: 2028-01-01T00:00:00Z")
        ],
    ).page()
    assert page.uses["index"].until == datetime(2028, 1, 1, tzinfo=UTC)
    assert describe(page.uses["index"]) == "allow acap.allow robots-meta.limit"
    assert page.uses["present"].prohibited_modifications == {"format", "translation"}
    snippet = page.uses["present-snippet"]
    assert (snippet.max_words, snippet.max_chars) == (10, 50)
    later = (
        Case(acap, markup=[meta("robots", "unavailable_after: 2040-01-01T00:00:00Z")])
        .page()
        .uses["index"]
        .until
    )
    assert later is not None
    assert later.year in (2029, 2030)  # the end of the last day, as ACAP is read here


ACAP_RECORD = ["", "ACAP-crawler: *"]
MODIFYING: list[tuple[Case, str, str]] = [
    # The page prohibits the modification that is the use.
    (
        Case(markup=[meta("robots", "notranslate")]),
        "translate",
        "deny comity.modification robots-meta.limit comity.default",
    ),
    (
        Case(fields=[("X-Robots-Tag", "notranslate")]),
        "translate",
        "deny comity.modification robots-meta.limit comity.default",
    ),
    (
        Case(["usage: ai=y"], markup=[meta("robots", "notranslate")]),
        "translate",
        "deny comity.modification robots-meta.limit usage.allow",
    ),
    (Case(markup=[meta("robots", "notranslate")]), "transcribe", "allow? comity.default"),
    (
        Case(markup=[meta("robots", "notranslate")]),
        "present",
        "deny? comity.default robots-meta.limit",
    ),
    # A file permits to show the page unless it is translated.
    *(
        (
            Case([*ACAP_RECORD, f"ACAP-allow-{usage}: / prohibited-modification={modification}"]),
            use,
            "deny comity.modification acap.allow comity.default"
            if is_prohibited
            else "allow? comity.default",
        )
        for usage in ("present", "present-original", "present-currentcopy", "present-oldcopy")
        for modification, use, is_prohibited in [
            ("translation", "translate", True),
            ("any", "translate", True),
            ("style", "translate", False),
            ("format", "transcribe", True),
            ("any", "transcribe", True),
            ("translation", "manipulate", False),
            ("any", "manipulate", True),
            ("any", "rephrase", True),
            ("any", "clip", True),
            ("any", "summarize", False),
            ("any", "train", False),
            # Uses that the operator names after modifications
            ("annotation", "annotation", True),
            ("any", "style", True),
            ("format", "style", False),
        ]
    ),
    (
        Case([*ACAP_RECORD, "ACAP-allow-present: /other/ prohibited-modification=any"]),
        "translate",
        "allow? comity.default",
    ),
    (Case([*ACAP_RECORD, "ACAP-disallow-present: /"]), "translate", "allow? comity.default"),
]


@pytest.mark.requirement("MEET-3", "ACAP-35")
@pytest.mark.parametrize(("case", "use", "want"), MODIFYING)
def test_a_use_is_refused_that_is_a_modification_which_is_prohibited(
    case: Case, use: str, want: str
) -> None:
    uses = (
        "translate",
        "transcribe",
        "manipulate",
        "rephrase",
        "clip",
        "summarize",
        "train",
        "annotation",
        "style",
    )
    decision = case.page(
        replace(AGENT, uses=uses, defaults=dict.fromkeys(uses, Verdict.ALLOW))
    ).uses[use]
    assert describe(decision) == want
    if decision.verdict is Verdict.DENY and decision.stated:
        first, second = decision.reasons[:2]
        assert first.source == second.source
        assert first.source.text


@pytest.mark.requirement("MEET-3")
def test_a_prohibited_modification_is_a_statement_even_if_the_default_refuses() -> None:
    decision = Case(markup=[meta("robots", "notranslate")]).page().uses["translate"]
    assert describe(decision) == "deny comity.modification robots-meta.limit comity.default"


@pytest.mark.requirement("MEET-3")
def test_an_arrangement_permits_a_modification_that_is_prohibited() -> None:
    arranged = replace(
        AGENT, arrangements=(Arrangement("example.com", uses=frozenset(("translate",))),)
    )
    assert (
        Case(markup=[meta("robots", "notranslate")]).page(arranged).uses["translate"].verdict
        is Verdict.ALLOW
    )


@pytest.mark.requirement("MEET-3", "MEET-6")
def test_a_modification_is_refused_that_is_prohibited_of_another_spelling_of_the_url() -> None:
    case = Case([*ACAP_RECORD, "ACAP-allow-present: /b/ prohibited-modification=translation"])
    permitting = replace(AGENT, uses=("translate",), defaults={"translate": Verdict.ALLOW})
    assert case.page(permitting, f"{ORIGIN}/a//../b/c").uses["translate"].verdict is Verdict.DENY
    first, last = case.page(permitting, f"{ORIGIN}/b/"), case.page(permitting, f"{ORIGIN}/c")
    assert last.asked_as(first).uses["translate"].verdict is Verdict.DENY


@pytest.mark.requirement("MEET-3")
def test_what_only_limits_permits_nothing() -> None:
    case = Case(markup=[meta("robots", "max-snippet:50")])
    refused = case.page().uses["present-snippet"]
    assert describe(refused) == "deny? comity.default robots-meta.limit"
    assert refused.max_chars == 50  # for readers with another default
    permitting = replace(AGENT, defaults={"present-snippet": Verdict.ALLOW})
    decision = case.page(permitting).uses["present-snippet"]
    assert describe(decision) == "allow? comity.default robots-meta.limit"
    assert decision.max_chars == 50


@pytest.mark.requirement("MEET-4")
def test_operators_have_a_table_of_their_own() -> None:
    case = Case(["usage: ai=n"], markup=[meta("robots", "noarchive")])
    more = Vocabulary.from_toml(
        '[[relation]]\nuses = ["train"]\nterms = ["robots-meta:noarchive"]\nkind = "touches"\n'
        'why = "ours"'
    )
    other = Vocabulary.from_toml(
        "replaces = true\n[vocabulary.robots-meta.terms]\nnoarchive = {}\n[[relation]]\n"
        'uses = ["train"]\n'
        'terms = ["robots-meta:noarchive"]\nkind = "touches"\nwhy = "ours alone"'
    )
    assert describe(case.page().uses["train"]) == "deny usage.disallow"
    assert (
        describe(case.page(replace(AGENT, vocabulary=more)).uses["train"])
        == "deny usage.disallow robots-meta.disallow"
    )
    assert (
        describe(case.page(replace(AGENT, vocabulary=other)).uses["train"])
        == "deny robots-meta.disallow"
    )


# The content to which statements apply


@pytest.mark.requirement("USE-13")
@pytest.mark.parametrize("name", ["Content-Usage", "Usage-Pref"])
def test_a_field_is_about_the_content_of_its_response(name: str) -> None:
    """The next response for the resource has its own statements."""
    refusing, silent = Case(fields=[(name, "ai=n")]), Case()
    assert refusing.page().uses["train"].stated
    assert refusing.page().uses["train"].verdict is Verdict.DENY
    site = refusing.site
    site.page(AGENT, URL, headers=refusing.headers)
    assert (
        describe(site.page(AGENT, URL, headers=silent.headers).uses["train"])
        == "deny? comity.default"
    )


REFUSING = Case(
    [
        "usage: tdm=n",
        "content-usage: train-ai=n, all=n",
        "content-signal: search=no, ai-input=no, ai-train=no, use=immediate",
        "license: /license.xml",
    ],
    {**reservation(1), LICENSE: rsl(prohibits("all"))},
    [
        ("Content-Usage", "tdm=n"),
        ("X-Robots-Tag", "none, noai"),
        ("tdm-reservation", "1"),
        ("Link", LINK),
    ],
    [meta("robots", "none, noai"), meta("tdm-reservation", "1"), script(prohibits("all"))],
)


@pytest.mark.requirement("USE-14")
def test_no_preference_refuses_to_be_fetched() -> None:
    assert REFUSING.site.access(AGENT, URL).verdict is Verdict.ALLOW
    page = REFUSING.page()
    assert describe(page.uses["crawl"]) == "allow robots.no-match"
    refused = {
        reason.rule for use in page.uses if use != "crawl" for reason in page.uses[use].reasons
    }
    assert all(page.uses[use].verdict is Verdict.DENY for use in page.uses if use != "crawl")
    assert refused >= {
        "usage.disallow",
        "content-usage.disallow",
        "content-signal.disallow",
        "robots-meta.disallow",
    }
    # rsl.unlicensed: the document in the Link field is missing.
    assert refused >= {"tdmrep.reserved", "rsl.prohibits", "rsl.unlicensed"}


@pytest.mark.requirement("USE-14")
@pytest.mark.parametrize("host", ["example.com", "*.com"])
def test_a_licence_comes_first_and_says_so(host: str) -> None:
    agent = replace(
        AGENT,
        arrangements=(Arrangement(host, uses=frozenset(("train",)), reference="contract 2026/14"),),
    )
    page, site = REFUSING.page(agent), REFUSING.site
    decision = page.uses["train"]
    assert (decision.verdict, decision.stated) == (Verdict.ALLOW, True)
    first, *others = decision.reasons
    assert first.rule == "comity.arrangement"
    assert first.source.url == "COMITY_ARRANGEMENTS"
    assert "contract 2026/14" in first.source.text
    assert [reason.rule for reason in others] == [
        reason.rule for reason in REFUSING.page().uses["train"].reasons
    ]
    assert page.uses["ai"].verdict is Verdict.DENY  # `ai` is not among the arranged uses
    assert site.unusable(agent) is None
    assert site.refused_by_headers(agent, URL, REFUSING.headers) is None
    VALIDATOR.validate(page.permissions)


@pytest.mark.requirement("USE-14")
@pytest.mark.parametrize("host", ["example.org", "*.example.com", "example.com:8080"])
def test_a_licence_of_another_host_is_none(host: str) -> None:
    agent = replace(
        AGENT, arrangements=(Arrangement(host, uses=frozenset(("train",)), reference="contract"),)
    )
    assert describe(REFUSING.page(agent).uses["train"]) == describe(REFUSING.page().uses["train"])


@pytest.mark.requirement("USE-14", "MEET-3")
def test_defaults_come_last() -> None:
    agent = replace(
        AGENT, defaults={"train": Verdict.ALLOW, "search": Verdict.DENY, "follow": Verdict.DENY}
    )
    assert describe(Case().page(agent).uses["train"]) == "allow? comity.default"
    assert describe(Case(["usage: genai=n"]).page(agent).uses["train"]) == "deny usage.disallow"
    assert describe(Case(["usage: search=y"]).page(agent).uses["search"]) == "allow usage.allow"
    assert describe(Case().page(agent).uses["follow"]) == "deny? comity.default"
    assert describe(Case().page().uses["follow"]) == "allow? comity.default"


@pytest.mark.requirement("PREF-5")
def test_the_files_of_the_fetch_govern_and_their_hash_travels_along() -> None:
    before, after = Case(["content-usage: train-ai=n"]), Case(["content-usage: train-ai=y"])
    page = before.page()
    after.page()
    body = (GROUP + "content-usage: train-ai=n").encode()
    assert page.permissions["uses"]["train"]["verdict"] == "deny"
    assert (
        page.permissions["policies"][f"{ORIGIN}/robots.txt"]["sha256"]
        == hashlib.sha256(body).hexdigest()
    )


# Embedded files and images

EMBEDDED = [
    ("nothing", Case(), "", ""),
    ("noai", Case(markup=[meta("robots", "noai")]), "train-", ""),
    ("noimageai", Case(markup=[meta("robots", "noimageai")]), "", "train-"),
    ("noimageai-field", Case(fields=[("X-Robots-Tag", "testbot: noimageai")]), "", "train-"),
    ("both", Case(markup=[meta("robots", "noai, noimageai")]), "train-", ""),
    ("noimageindex", Case(markup=[meta("robots", "noimageindex")]), "", "index- present-"),
    (
        "beside-a-permission",
        Case(["usage: ai=y"], markup=[meta("robots", "noimageai")]),
        "train+ ai+",
        "train- ai-",
    ),
]


def stated_uses(uses: Mapping[str, Any], *among: str) -> str:
    """Return the stated decisions about some uses; without names: about all uses."""
    marks = {"allow": "+", "deny": "-"}
    return " ".join(
        sorted(
            use + marks[one["verdict"]]
            for use, one in uses.items()
            if one["stated"] and (not among or use in among)
        )
    )


@pytest.mark.requirement("META-3")
@pytest.mark.parametrize(
    ("case", "of_page", "of_embedded"),
    [row[1:] for row in EMBEDDED],
    ids=[row[0] for row in EMBEDDED],
)
def test_files_and_images_of_a_page_are_bound_by_it(
    case: Case, of_page: str, of_embedded: str
) -> None:
    """The tag lists the uses that differ. For an image itself the rules for images hold."""
    page = case.page()
    tag = page.permissions
    VALIDATOR.validate(tag)
    among = ("train", "ai", "index", "present")
    assert stated_uses(tag["uses"], *among) == " ".join(sorted(of_page.split()))
    assert stated_uses(tag.get("embedded", {}), *among) == " ".join(sorted(of_embedded.split()))
    assert ("embedded" in tag) == bool(of_embedded)
    for use in page.uses:
        expected = tag.get("embedded", {}).get(use, tag["uses"][use])["verdict"]
        assert page.embedded[use].verdict.value == expected
    image = case.page(headers=[*case.headers, (b"Content-Type", b"image/PNG")])
    if not case.markup:
        assert {use: image.uses[use].verdict for use in page.uses} == {
            use: page.embedded[use].verdict for use in page.uses
        }


@pytest.mark.requirement("META-3")
@pytest.mark.parametrize(
    "media_type", [b"application/octet-stream", b"text/html", b"application/xml", b""]
)
@pytest.mark.parametrize(
    ("body", "is_image"),
    [
        *(
            (start + b"...", True)
            for start in (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\n\0\0\0WEBPVP8 ")
        ),
        *((body, True) for body in (b"BM\n\0\0\0\0\0\0\0", b"\0\0\1\0")),
        *(
            (body, False)
            for body in (
                b"",
                b"PNG",
                b"BMW builds cars.",
                b"RIFF\n\0\0\0WAVEfmt ",
                b"<p>PNG",
                b"{}",
            )
        ),
    ],
)
def test_what_has_the_octets_of_an_image_is_bound_as_one(
    media_type: bytes, body: bytes, is_image: bool
) -> None:
    fields = [(b"X-Robots-Tag", b"noimageai"), (b"Content-Type", media_type)]
    page = Site.from_files(ORIGIN, {}).page(
        Agent("examplebot"), f"{ORIGIN}/a", headers=fields, body=body
    )
    assert page.uses["train"].stated is is_image


@pytest.mark.requirement("META-3")
def test_what_acap_refuses_of_a_page_is_refused_of_the_images_in_it() -> None:
    page = Case(
        ["ACAP-crawler: *", "ACAP-disallow-index: /"], markup=[meta("robots", "noimageai")]
    ).page()
    for uses in (page.uses, page.embedded):
        assert [reason.rule for reason in uses["index"].reasons] == ["acap.disallow"]


# TDMRep: file, then field, then meta

FIELD0, FIELD1 = [("tdm-reservation", "0")], [("tdm-reservation", "1")]
META0, META1 = [meta("tdm-reservation", "0")], [meta("tdm-reservation", "1")]
TDM = [
    ("file", Case(files=reservation(1)), "deny tdmrep.reserved"),
    ("field-after-file", Case(files=reservation(1), fields=FIELD0), "allow tdmrep.not-reserved"),
    ("field-reserves", Case(files=reservation(0), fields=FIELD1), "deny tdmrep.reserved"),
    ("meta-after-field", Case(fields=FIELD1, markup=META0), "allow tdmrep.not-reserved"),
    ("meta-after-file", Case(files=reservation(0), markup=META1), "deny tdmrep.reserved"),
    (
        "meta-after-both",
        Case(files=reservation(0), fields=FIELD0, markup=META1),
        "deny tdmrep.reserved",
    ),
    (
        "absence-resets-nothing",
        Case(files=reservation(1), fields=[("tdm-policy", "/p.json")]),
        "deny tdmrep.reserved",
    ),
    (
        "other-values-set-nothing",
        Case(files=reservation(1), fields=[("tdm-reservation", "no")]),
        "deny tdmrep.reserved",
    ),
    (
        "other-meta-sets-nothing",
        Case(fields=FIELD1, markup=[meta("tdm-reservation", "false")]),
        "deny tdmrep.reserved",
    ),
    ("not-that-path", Case(files=reservation(1, "/shop/")), "deny? comity.default"),
    # Another vocabulary has its own term
    ("with-another", Case(["usage: tdm=y"], reservation(1)), "deny tdmrep.reserved usage.allow"),
]


@pytest.mark.requirement("TDM-1", "TDM-2")
@pytest.mark.parametrize(
    ("case", "want"), one_in(2, [row[1:] for row in TDM]), ids=[row[0] for row in TDM]
)
def test_of_tdmrep_what_comes_later_supersedes(case: Case, want: str) -> None:
    assert describe(case.page().uses["tdm"]) == want


# RSL

WIDENING = [
    Case(["Disallow: /", "license: /license.xml"], {LICENSE: rsl(permits("all"))}),
    Case(["Disallow: /"], fields=[("Link", LINK)], resources={LICENSE: rsl(permits("all"))}),
    Case(["Disallow: /"], markup=[script(permits("all"))]),
]


@pytest.mark.requirement("RSL-1")
@pytest.mark.parametrize("case", WIDENING)
def test_a_license_widens_nothing(case: Case) -> None:
    """It permits no fetch, and nothing in another vocabulary."""
    assert case.site.access(AGENT, URL).verdict is Verdict.DENY
    assert describe(case.page().uses["crawl"]) == "deny robots.disallow"
    assert describe(case.page().uses["train"]) == "allow rsl.permits"
    refusing = case._replace(robots=["usage: ai=n", *case.robots])
    assert describe(refusing.page().uses["train"]) == "deny usage.disallow rsl.permits"


@pytest.mark.requirement("RSL-1")
def test_a_license_narrows_nothing_of_what_may_be_fetched() -> None:
    case = Case(["license: /license.xml"], {LICENSE: rsl(prohibits("all"))})
    assert case.site.access(AGENT, URL).verdict is Verdict.ALLOW


@pytest.mark.requirement("RSL-1", "RSL-2")
def test_licenses_that_a_page_refers_to_are_wanted_and_refuse_until_they_are_had() -> None:
    linked = '<link rel="license" type="application/rsl+xml" href="/license.xml">'
    for case in (Case(fields=[("Link", LINK)]), Case(markup=[linked])):
        assert case.page().required_resources == (ORIGIN + LICENSE,)
        assert describe(case.page().uses["train"]) == "deny rsl.unlicensed"
        had = case._replace(resources={LICENSE: rsl(permits("ai-train"))}).page()
        assert describe(had.uses["train"]) == "allow rsl.permits"


# Sites and responses that are not worth a request

FREE = rsl(permits("ai-train"), "/free/").partition(">")[2]

UNUSABLE = [
    ("silence", Case(), ""),
    ("usage", Case(["usage: ai=n"]), "usage.disallow"),
    (
        "two",
        Case(["usage: ai=n", "content-signal: ai-train=no"]),
        "usage.disallow content-signal.disallow",
    ),
    ("for-others", Case(["usage: search=n"]), ""),
    ("content-usage", Case(["content-usage: train-ai=n"]), "content-usage.disallow"),
    ("content-usage-path", Case(["content-usage: /a train-ai=n"]), ""),
    (
        "content-usage-exception",
        Case(["content-usage: train-ai=n", "content-usage: /free train-ai=y"]),
        "",
    ),
    (
        "content-usage-silent-exception",
        Case(["content-usage: train-ai=n", "content-usage: /free search=y"]),
        "",
    ),
    ("tdmrep", Case(files=reservation(1)), "tdmrep.reserved"),
    ("tdmrep-path", Case(files=reservation(1, "/a")), ""),
    (
        "license",
        Case(["license: /license.xml"], {LICENSE: rsl(prohibits("ai-all"))}),
        "rsl.prohibits",
    ),
    ("license-not-had", Case(["license: /license.xml"]), "rsl.unlicensed"),
    (
        "license-list",
        Case(["license: /license.xml"], {LICENSE: rsl(permits("search"))}),
        "rsl.unlicensed",
    ),
    # A permission of a narrower word is not refused by a refusal of the broader one
    ("license-permits", Case(["license: /license.xml"], {LICENSE: rsl(permits("ai-train"))}), ""),
    (
        "license-permits-somewhere",
        Case(["license: /license.xml"], {LICENSE: rsl(permits("search")).replace("</rsl>", FREE)}),
        "",
    ),
    (
        "acap-other",
        Case(["", "ACAP-crawler: *", "ACAP-allow-crawl: /", "ACAP-disallow-other: /"]),
        "acap.disallow",
    ),
    (
        "acap-other-path",
        Case(["", "ACAP-crawler: *", "ACAP-allow-crawl: /", "ACAP-disallow-other: /a/"]),
        "",
    ),
    (
        "acap-exception",
        Case(["", "ACAP-crawler: *", "ACAP-disallow-other: /", "ACAP-allow-other: /free/"]),
        "",
    ),
    ("acap-index", Case(["", "ACAP-crawler: *", "ACAP-disallow-index: /"]), ""),
]


@pytest.mark.requirement("MEET-3", "USE-14")
@pytest.mark.parametrize(
    ("case", "want"), one_in(2, [row[1:] for row in UNUSABLE]), ids=[row[0] for row in UNUSABLE]
)
def test_a_site_that_refuses_every_declared_use_of_all_its_pages(case: Case, want: str) -> None:
    found = case.site.unusable(AGENT)
    assert (found is not None) == bool(want)
    if found is not None:
        assert " ".join(reason.rule for reason in found.reasons) == want
        assert found.verdict is Verdict.DENY
        assert case.page().uses["train"].verdict is Verdict.DENY
    # One remaining use is enough, and so is no declared use.
    assert case.site.unusable(replace(AGENT, uses=("train", "crawl"))) is None
    assert case.site.unusable(replace(AGENT, uses=())) is None


@pytest.mark.requirement("MEET-3", "MEET-4")
def test_a_site_that_refuses_one_use_by_one_file_and_another_by_another() -> None:
    case = Case(
        ["usage: ai=n", "", "ACAP-crawler: *", "ACAP-disallow-index: /", "ACAP-allow-present: /a/"],
        reservation(1),
    )
    found = case.site.unusable(replace(AGENT, uses=("train", "index", "search")))
    assert found is not None
    assert [reason.rule for reason in found.reasons] == [
        "usage.disallow",
        "tdmrep.reserved",
        "acap.disallow",
    ]
    assert [reason.source.line for reason in found.reasons] == [2, 1, 5]
    assert case.site.unusable(replace(AGENT, uses=("train", "present"))) is None


HEADERS = [
    ("none", [], "", ""),
    ("others", [("Content-Type", "text/html"), ("Server", "x")], "", ""),
    ("usage", [("Content-Usage", "ai=n")], "", "deny"),
    ("noai", [("X-Robots-Tag", "noai")], "", "deny"),
    ("noai-others", [("X-Robots-Tag", "otherbot: noai")], "", ""),
    ("noindex", [("X-Robots-Tag", "noindex")], "", ""),
    # The `meta` comes after the field, and may override it
    ("tdm", [("tdm-reservation", "1")], "", ""),
    # The licence in the field is not fetched yet
    ("link", [("Link", LINK)], "", ""),
    # The site's statements count only besides fields: without fields, the page was worth a request
    ("site-alone", [("Server", "x")], "usage: ai=n", ""),
    ("permits", [("Content-Usage", "ai=y")], "", ""),
    ("site-refuses", [("Content-Signal", "search=yes")], "usage: ai=n", "deny"),
    ("image", [("X-Robots-Tag", "noimageai"), ("Content-Type", "image/png")], "", "deny"),
    ("no-image", [("X-Robots-Tag", "noimageai"), ("Content-Type", "text/html")], "", ""),
]


@pytest.mark.requirement("MEET-3", "META-3", "TDM-1")
@pytest.mark.parametrize(
    ("fields", "robots", "want"),
    one_in(2, [row[1:] for row in HEADERS]),
    ids=[row[0] for row in HEADERS],
)
def test_a_response_whose_fields_refuse_every_declared_use(
    fields: list[tuple[str, str]], robots: str, want: str
) -> None:
    case = Case([robots], fields=fields)
    found = case.site.refused_by_headers(AGENT, URL, case.headers, NOW)
    assert (found.verdict.value if found is not None else "") == want
    assert case.site.refused_by_headers(replace(AGENT, uses=()), URL, case.headers, NOW) is None
    assert (
        case.site.refused_by_headers(
            replace(AGENT, uses=("train", "crawl")), URL, case.headers, NOW
        )
        is None
    )


# Properties of whole sites

USAGE, AIPREF = ("tdm", "ai", "genai", "search"), ("train-ai", "ai-use", "search", "all", "genai")
SIGNALS, DIRECTIVES = (
    ("search", "ai-input", "ai-train"),
    ("noindex", "nofollow", "noai", "noimageai", "nosnippet", "noarchive"),
)
WORDS = ("all", "ai-all", "ai-train", "ai-input", "search")
QUESTIONS = (
    "crawl",
    "follow",
    "index",
    "present",
    "present-snippet",
    "search",
    "tdm",
    "ai",
    "train",
    "ai-input",
    "summarize",
    "zzz",
)

Pair = tuple[str, str]


class Site_(NamedTuple):  # noqa: N801  # `Site` is the class under test
    """A site as its authors wrote it.

    Attributes:
        everybodys: lines of the group for all crawlers.
        own: lines of the agent's own group. None: it has none.
        acap: lines of ACAP.
        tdm: path and reservation of each rule in tdmrep.json.
        licenses: terms of the documents that robots.txt refers to.
        fields: header fields.
        markup: elements of the page."""

    everybodys: tuple[str, ...] = ()
    own: tuple[str, ...] | None = None
    acap: tuple[str, ...] = ()
    tdm: tuple[tuple[str, int], ...] = ()
    licenses: tuple[str, ...] = ()
    fields: tuple[Pair, ...] = ()
    markup: tuple[str, ...] = ()

    def build(self) -> Case:
        numbered = {f"/{number}.xml": rsl(terms) for number, terms in enumerate(self.licenses)}
        lines = [
            *self.everybodys,
            *(f"License: {path}" for path in numbered),
            "Disallow: /private/",
        ]
        if self.own is not None:
            lines += [
                "",
                "User-agent: testbot",
                *self.own,
                *(f"License: {path}" for path in numbered),
                "Disallow: /private/",
            ]
        lines += ["", "ACAP-crawler: *", "ACAP-allow-crawl: /", *self.acap] if self.acap else []
        rules = json.dumps(
            [{"location": location, "tdm-reservation": value} for location, value in self.tdm]
        )
        return Case(
            lines, {**numbered, **({TDMREP: rules} if self.tdm else {})}, self.fields, self.markup
        )


def pairs(labels: Sequence[str], yes: str, no: str) -> st.SearchStrategy[str]:
    members = st.tuples(st.sampled_from(labels), st.sampled_from((yes, no))).map("=".join)
    return st.lists(members, min_size=1, max_size=3).map(", ".join)


LINES = st.one_of(
    st.builds("usage: {}".format, pairs(USAGE, "y", "n")),
    st.builds("usage-pref: {}".format, pairs(USAGE, "y", "n")),
    st.builds("content-usage: {}".format, pairs(AIPREF, "y", "n")),
    st.builds("content-signal: {}".format, pairs(SIGNALS, "yes", "no")),
)
FIELDS = st.one_of(
    st.tuples(st.just("Content-Usage"), pairs(AIPREF + USAGE, "y", "n")),
    st.tuples(st.just("Usage-Pref"), pairs(USAGE, "y", "n")),
    st.tuples(st.just("Content-Signal"), pairs(SIGNALS, "yes", "no")),
    st.tuples(
        st.just("X-Robots-Tag"), st.lists(st.sampled_from(DIRECTIVES), max_size=2).map(", ".join)
    ),
    st.tuples(st.just("tdm-reservation"), st.sampled_from("01")),
)
TERMS = st.tuples(st.sampled_from((permits, prohibits)), st.sampled_from(WORDS)).map(
    lambda made: made[0](made[1])
)
MARKUP = st.one_of(
    st.builds(meta, st.sampled_from(("robots", "TestBot")), st.sampled_from(DIRECTIVES)),
    st.builds(meta, st.just("tdm-reservation"), st.sampled_from("01")),
    st.builds(script, TERMS),
)
ACAP = st.builds(
    "ACAP-{}-{}: {}".format,
    st.sampled_from(("allow", "disallow")),
    st.sampled_from(("index", "present", "present-snippet", "follow", "other")),
    st.sampled_from(("/", "/news/")),
)
SITES = st.builds(
    Site_,
    everybodys=st.lists(LINES, max_size=3).map(tuple),
    own=st.none() | st.lists(LINES, max_size=3).map(tuple),
    acap=st.lists(ACAP, max_size=2).map(tuple),
    tdm=st.lists(
        st.tuples(st.sampled_from(("/", "/news/", "/shop/")), st.integers(0, 1)), max_size=2
    ).map(tuple),
    licenses=st.lists(TERMS, max_size=2).map(tuple),
    fields=st.lists(FIELDS, max_size=3).map(tuple),
    markup=st.lists(MARKUP, max_size=3).map(tuple),
)
AGENTS = st.builds(
    lambda defaults, uses: Agent("testbot", uses=tuple(uses), defaults=defaults),
    st.dictionaries(
        st.sampled_from(QUESTIONS), st.sampled_from((Verdict.ALLOW, Verdict.DENY)), max_size=4
    ),
    st.lists(st.sampled_from(QUESTIONS[1:]), max_size=2, unique=True),
)

# Statements that are added. A Content-Usage line gets no path, because only the longest path counts
# there (PREF-2). A license's own document gets nothing, because its narrower word decides (RSL-2).
REFUSALS: dict[str, st.SearchStrategy[Any]] = {
    "everybodys": st.one_of(
        st.sampled_from(USAGE).map("usage: {}=n".format),
        st.sampled_from(AIPREF).map("content-usage: {}=n".format),
        st.sampled_from((*SIGNALS, "use")).map("content-signal: {}=no".format),
    ),
    "acap": st.sampled_from(("index", "present", "follow", "other")).map(
        "ACAP-disallow-{}: /".format
    ),
    "tdm": st.sampled_from(("/", "/news/", "*")).map(lambda location: (location, 1)),
    "licenses": st.sampled_from(WORDS).map(prohibits),
    "fields": st.one_of(
        st.sampled_from(USAGE).map(lambda label: ("Content-Usage", f"{label}=n")),
        st.sampled_from(USAGE).map(lambda label: ("Usage-Pref", f"{label}=n")),
        st.sampled_from(SIGNALS).map(lambda label: ("Content-Signal", f"{label}=no")),
        st.sampled_from((*DIRECTIVES, "none", "max-snippet:0")).map(
            lambda word: ("X-Robots-Tag", word)
        ),
        st.just(("tdm-reservation", "1")),
        st.just(("Link", LINK)),
    ),
    "markup": st.one_of(
        st.sampled_from(DIRECTIVES).map(lambda word: meta("robots", word)),
        st.just(META1[0]),
        st.sampled_from(WORDS).map(lambda word: script(prohibits(word))),
        st.just(
            '<script type="application/ld+json">{"@type": "AutomationPolicyAnnotation", '
            '"allowedPurposes": ["x"]}</script>'
        ),
    ),
}
REFUSALS["own"] = REFUSALS["everybodys"]

NOTHING: dict[str, st.SearchStrategy[Any]] = {
    "everybodys": st.one_of(
        st.sampled_from(("zzz9=n", "ai=N", "ai", "=n,,", "ai = no", "zzz9=y")).map(
            "usage: {}".format
        ),
        st.sampled_from(
            ("zzz9=n", "train-ai", "train-ai=?0", "TRAIN-AI=n", "=", "* train-ai=n")
        ).map("content-usage: {}".format),
        st.sampled_from(("zzz9=no", "ai-train", "ai-train=y", "=no")).map(
            "content-signal: {}".format
        ),
        st.sampled_from(
            ("unheard-of: train=n", "license: MIT", "usage-preference: ai=n", "noindex: /")
        ),
    ),
    "fields": st.one_of(
        st.tuples(st.just("Content-Usage"), st.sampled_from(("zzz9=n", "zzz9=?0", "zzz9"))),
        st.tuples(st.just("Usage-Pref"), st.sampled_from(("zzz9=n", "ai=no", ",;"))),
        st.tuples(st.just("Content-Signal"), st.sampled_from(("zzz9=no", "ai-train"))),
        st.tuples(
            st.just("X-Robots-Tag"), st.sampled_from(("zzz9", "otherbot: noai, nofollow", "all"))
        ),
        st.sampled_from([("TDM", "1"), ("Link", '<https://example.org/>; rel="license"')]),
    ),
    "markup": st.one_of(
        st.sampled_from(("zzz9", "index, follow, all")).map(
            lambda content: meta("robots", content)
        ),
        st.sampled_from(
            (
                meta("otherbot", "noai"),
                meta("usage", "ai=n"),
                '<link rel="license" href="/LICENSE.txt">',
            )
        ),
        st.just('<script type="application/ld+json">{"@type": "Thing"}</script>'),
    ),
}
NOTHING["own"] = NOTHING["everybodys"]

MANY = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])


def with_one_more(
    data: st.DataObject, site: Site_, additions: Mapping[str, st.SearchStrategy[Any]]
) -> Site_:
    possible = [name for name in additions if getattr(site, name) is not None]
    name = data.draw(st.sampled_from(sorted(possible)))
    before = list(getattr(site, name))
    before.insert(data.draw(st.integers(0, len(before))), data.draw(additions[name]))
    return site._replace(**{name: tuple(before)})


def answers(site: Site_, agent: Agent) -> dict[str, tuple[Any, ...]]:
    """Return the decisions about the page and its embedded files, with reasons in any order."""
    page = site.build().page(agent)
    return {
        f"{name} {use}": (
            one.verdict,
            one.stated,
            one.restrictions(),
            frozenset(reason.rule.partition(".")[0] for reason in one.reasons),
        )
        for name, uses in (("page", page.uses), ("embedded", page.embedded))
        for use in (*QUESTIONS, *uses)
        for one in (uses[use],)
    }


@pytest.mark.requirement("MEET-3", "PREF-4")
@MANY
@given(st.data(), SITES, AGENTS)
def test_one_more_refusal_never_permits(data: st.DataObject, site: Site_, agent: Agent) -> None:
    before, after = answers(site, agent), answers(with_one_more(data, site, REFUSALS), agent)
    allowed = {use for use, (verdict, *_) in after.items() if verdict is Verdict.ALLOW}
    assert not [use for use in allowed & before.keys() if before[use][0] is Verdict.DENY]


@pytest.mark.requirement("MEET-3", "USE-1", "USE-3")
@MANY
@given(st.data(), SITES, AGENTS)
def test_what_means_nothing_changes_nothing(data: st.DataObject, site: Site_, agent: Agent) -> None:
    """Unknown labels, malformed members, and lines of another vocabulary."""
    before, after = answers(site, agent), answers(with_one_more(data, site, NOTHING), agent)
    assert {use: after[use] for use in before} == before


@pytest.mark.requirement("MEET-3", "USE-2", "USE-7")
@MANY
@given(st.data(), SITES, AGENTS)
def test_the_order_of_sources_never_matters(data: st.DataObject, site: Site_, agent: Agent) -> None:
    # Without the rules of tdmrep.json, because the first of them decides.
    names = ("everybodys", "own", "acap", "licenses", "fields", "markup")
    shuffled = {
        name: tuple(data.draw(st.permutations(getattr(site, name))))
        for name in names
        if getattr(site, name) is not None
    }
    assert answers(site._replace(**shuffled), agent) == answers(site, agent)


@pytest.mark.requirement("MEET-3")
@MANY
@given(SITES, AGENTS)
def test_what_is_refused_before_the_page_is_refused_of_the_page(site: Site_, agent: Agent) -> None:
    """A refusal for the whole site, or by header fields, holds for every page without statements.

    A refusal by header fields holds for every body."""
    silent = site._replace(fields=(), markup=()).build()
    if silent.site.unusable(agent) is not None:
        assert {silent.page(agent).uses[use].verdict for use in agent.uses} == {Verdict.DENY}
    case = site.build()
    if case.site.refused_by_headers(agent, URL, case.headers, NOW) is not None:
        assert {case.page(agent).uses[use].verdict for use in agent.uses} == {Verdict.DENY}


@pytest.mark.requirement("WHY-2")
@settings(max_examples=examples(50))
@given(SITES, AGENTS)
def test_every_tag_is_valid(site: Site_, agent: Agent) -> None:
    VALIDATOR.validate(site.build().page(agent).permissions)


@pytest.mark.requirement("TDM-3", "RSL-3", "USE-9", "SIG-1", "WHY-1")
def test_findings_of_every_file_are_told_by_the_site() -> None:
    lines = (
        b"Usage: ai\nContent-Usage: train-ai=maybe\nContent-Signal: search=perhaps\n"
        b"License: /rsl.xml\n"
    )
    site = Site.from_files(
        "https://example.com",
        {
            "/robots.txt": b"User-agent: *\n" + lines,
            "/.well-known/tdmrep.json": b"[",
            "/rsl.xml": b"<rsl",
        },
    )
    told = {
        (finding.rule, finding.url.removeprefix("https://example.com")) for finding in site.findings
    }
    assert told == {
        ("usage.ignored", "/robots.txt"),
        ("content-usage.value", "/robots.txt"),
        ("content-signal.value", "/robots.txt"),
        ("tdmrep.syntax", "/.well-known/tdmrep.json"),
        ("rsl.syntax", "/rsl.xml"),
    }


@pytest.mark.requirement("MEET-3")
def test_a_page_that_came_back_for_another_url_has_the_refusals_of_both() -> None:
    lines = {"index": "Content-Usage: search=y", "train": "Content-Usage: train-ai=n"}
    agent = Agent("examplebot", uses=("search", "train-ai"))

    def page(origin: str, *named: str) -> Page:
        body = "User-agent: *\n" + "".join(f"{lines[name]}\n" for name in named) + "Allow: /\n"
        return Site.from_files(origin, {"/robots.txt": body.encode()}).page(agent, f"{origin}/a")

    first, last = "https://example.com", "https://example.org"
    permitted = page(last).asked_as(page(first, "index"))
    assert not permitted.uses["search"].stated
    assert permitted.uses["search"].verdict is Verdict.DENY
    assert page(last, "index").asked_as(page(first)).uses["search"].verdict is Verdict.ALLOW
    refused = page(last, "index").asked_as(page(first, "train"))
    assert refused.uses["train-ai"].verdict is Verdict.DENY
    assert refused.uses["train-ai"].reasons[0].source.url == f"{first}/robots.txt"
    assert refused.uses["search"].verdict is Verdict.ALLOW


def came_back(first: Case, last: Case, agent: Agent = AGENT, **more: Any) -> Page:
    """Return the page of `last` at /b, which came back for /a of `first`."""
    return last.page(agent, f"{ORIGIN}/b", **more).asked_as(first.page(agent, f"{ORIGIN}/a"))


PERMITTING = replace(AGENT, defaults={"present-snippet": Verdict.ALLOW, "train": Verdict.ALLOW})


@pytest.mark.requirement("MEET-3")
def test_what_restricts_a_permission_of_another_url_restricts_the_page_that_came_back() -> None:
    """It is a limit of that page, or a condition of its permission, which permits nothing here."""
    limited, qualified = (
        Case(markup=[meta("robots", "max-snippet:50")]),
        Case(acap("allow-present-snippet: / max-length=5-words")),
    )
    for last in (Case(), Case(acap("allow-present-snippet: /"))):
        assert came_back(limited, last, PERMITTING).uses["present-snippet"].max_chars == 50
        decision = came_back(qualified, last, PERMITTING).uses["present-snippet"]
        assert (decision.verdict, decision.max_words) == (Verdict.ALLOW, 5)
        assert came_back(last, limited, PERMITTING).uses["present-snippet"].max_chars == 50
    assert came_back(qualified, Case()).uses["present-snippet"].verdict is Verdict.DENY


@pytest.mark.requirement("MEET-3")
def test_uses_that_another_url_names_are_listed_where_it_refuses_them() -> None:
    first = Case(acap("disallow-present-thumbnail: /", "allow-present-snippet: /"))
    assert {"present-thumbnail", "present-snippet"} <= set(first.page().uses)
    uses = came_back(first, Case()).uses
    assert "present-thumbnail" in list(uses)
    assert "present-snippet" not in list(uses)
    assert uses["present-thumbnail"].stated


@pytest.mark.requirement("MEET-6")
def test_uses_that_are_named_of_one_of_the_paths_are_listed() -> None:
    case = Case(acap("disallow-present-thumbnail: /closed/"))
    for path in ("/closed/a", "/open/../closed/a", "/closed/x/../a"):
        assert "present-thumbnail" in list(case.page(url=ORIGIN + path).uses)
    assert "present-thumbnail" not in list(case.page(url=f"{ORIGIN}/open/a").uses)


@pytest.mark.requirement("USE-14", "MEET-3")
def test_a_licence_is_one_for_all_urls_of_a_page() -> None:
    refusing = Case(["usage: ai=n"])
    licence = Arrangement("example.com", uses=frozenset(("train",)), reference="L-1")
    licensed, elsewhere = (
        replace(AGENT, arrangements=(replace(licence, host=host),))
        for host in ("example.com", "other.example")
    )
    for agent, verdict, refusable in (
        (licensed, Verdict.ALLOW, ()),
        (elsewhere, Verdict.DENY, ("train",)),
        (AGENT, Verdict.DENY, ("train",)),
    ):
        page = came_back(refusing, refusing, agent)
        assert page.uses["train"].verdict is verdict
        assert page.refusable(("train",)) == refusable
    other = Site.from_files("https://other.example", {}).page(licensed, "https://other.example/a")
    for page in (refusing.page(licensed).asked_as(other), other.asked_as(refusing.page(licensed))):
        assert page.uses["train"].verdict is Verdict.DENY
        assert page.refusable(("train",)) == ("train",)


@pytest.mark.requirement("MEET-1", "MEET-3")
def test_a_page_that_came_back_has_what_is_known_of_both() -> None:
    """Findings, files, licences, and the decisions on both requests."""
    first = Site.from_files(
        "https://first.example", {"/robots.txt": b"User-agent: *\nDisallow: /\nusage: ai\n"}
    )
    last = Case(["Allow: /"], fields=[("Link", LINK)], markup=[meta("robots", "max-snippet:x")])
    one, other = first.page(AGENT, "https://first.example/a"), last.page()
    both = other.asked_as(one)
    assert both.url == URL
    assert both.uses["crawl"].verdict is Verdict.DENY
    assert one.asked_as(other).uses["crawl"].verdict is Verdict.DENY
    assert both.uses["crawl"].reasons[0].source.url == "https://first.example/robots.txt"
    assert {finding.url for finding in both.findings} == {
        finding.url for finding in (*one.findings, *other.findings)
    }
    assert set(both.permissions["policies"]) == {
        *one.permissions["policies"],
        *other.permissions["policies"],
    }
    assert (
        both.required_resources
        == one.asked_as(other).required_resources
        == other.required_resources
        != ()
    )


@pytest.mark.requirement("META-3", "MEET-3")
def test_what_another_url_refuses_of_images_is_refused_of_those_in_the_page() -> None:
    images, silent = Case(markup=[meta("robots", "noimageai")]), Case()
    for page in (came_back(images, silent), came_back(silent, images), came_back(images, images)):
        assert page.embedded["train"].verdict is Verdict.DENY
        assert page.embedded["train"].stated
        assert not page.uses["train"].stated
    assert not came_back(silent, silent).embedded["train"].stated


@pytest.mark.requirement("AIT-7", "MEET-3", "MEET-5")
def test_elements_that_either_url_refuses_are_refused() -> None:
    """They are refused in the page that came back. Either URL may have the rules."""

    def page(host: str, *elements: str) -> Page:
        rules = "".join(f"    Element: {element}\n      Disallow: Train\n" for element in elements)
        files = {"/ai.txt": f"User-agent: *\n  Path: /\n{rules}".encode()} if elements else {}
        body = b"<html><head></head><body><p id=a>one</p><p id=b>two</p><p>three</p></body></html>"
        headers = [(b"Content-Type", b"text/html")]
        return Site.from_files(f"https://{host}", files).page(
            PERMITTING, f"https://{host}/", headers=headers, body=body
        )

    for first, last, selectors in (
        (("#a",), ("#b",), ["#a", "#b"]),
        (("#a",), (), ["#a"]),
        ((), ("#b",), ["#b"]),
        ((), (), []),
    ):
        both = page("last.example", *last).asked_as(page("first.example", *first))
        assert sorted(element.selector for element in both.elements) == selectors
        left = both.redacted(("train",))
        assert (b"one" in left, b"two" in left, b"three" in left) == (
            "#a" not in selectors,
            "#b" not in selectors,
            True,
        )


@pytest.mark.requirement("ACAP-14", "MEET-3")
def test_resources_and_first_moments_that_either_url_asks_for_are_asked_for() -> None:
    first = Case(acap("allow-index: / time-limit=3-days"))
    last = Case(acap("allow-present: / must-use-resource=https://example.com/logo.html"))
    arranging = Arrangement("example.com", features=frozenset(("must-use-resource",)))
    agent = replace(AGENT, arrangements=(arranging,))
    assert "index" in first.page(agent).dated
    assert "index" not in last.page(agent).dated
    assert "index" in came_back(first, last, agent).dated
    assert "index" in came_back(last, first, agent).dated
    wanted = last.page(agent).required_resources
    assert (
        wanted
        == came_back(first, last, agent).required_resources
        == came_back(last, first, agent).required_resources
        != ()
    )


@pytest.mark.requirement("MEET-2", "WHY-1")
def test_links_are_followed_as_the_use_says() -> None:
    for markup in ([], [meta("robots", "nofollow")]):
        page = Case(markup=markup).page()
        assert (page.follow.verdict, page.follow.reasons) == (
            page.uses["follow"].verdict,
            page.uses["follow"].reasons,
        )
    licence = Arrangement("example.com", uses=frozenset(("train",)), reference="L-1")
    reason = Case().page(replace(AGENT, arrangements=(licence,))).uses["train"].reasons[0]
    assert (reason.rule, reason.source.part, reason.source.text) == (
        "comity.arrangement",
        "setting",
        "example.com: train, L-1",
    )


@pytest.mark.requirement("MEET-4")
def test_words_that_are_no_uses_are_not_listed_among_the_uses() -> None:
    """Such words still refuse and limit uses."""
    basic = ["crawl", "follow", "index", "preserve", "present", "train"]
    assert list(Case().page().uses) == basic
    assert (
        list(Case(markup=[meta("robots", "noarchive, max-snippet:5, nosnippet")]).page().uses)
        == basic
    )
    assert list(Case(["usage: search=y"]).page().uses) == [*basic, "search"]


@pytest.mark.requirement("MEET-3")
def test_permissions_of_one_vocabulary_have_the_conditions_of_all() -> None:
    def decide_all(*verdicts: Verdict) -> tuple[Verdict, dict[str, Any], list[int]]:
        """Return verdict, conditions, and the lines that decided."""
        statements = [
            Statement(
                "usage:ai",
                verdict,
                "usage.allow",
                Location(line=line),
                Qualifiers(max_words=10 - line),
            )
            for line, verdict in enumerate(verdicts, 1)
        ]
        because = lambda statement: Reason(  # noqa: E731
            rule=statement.rule, source=Source(url=URL, line=statement.location.line)
        )
        decision = Preferences(AGENT.vocabulary, "usage", statements, because).decide("train")
        assert decision is not None
        return (
            decision.verdict,
            decision.restrictions(),
            [reason.source.line for reason in decision.reasons],
        )

    assert decide_all(Verdict.ALLOW) == (Verdict.ALLOW, {"max_words": 9}, [1])
    assert decide_all(Verdict.ALLOW, Verdict.ALLOW) == (Verdict.ALLOW, {"max_words": 8}, [1, 2])
    assert decide_all(Verdict.ALLOW, Verdict.DENY) == (Verdict.DENY, {}, [2])
