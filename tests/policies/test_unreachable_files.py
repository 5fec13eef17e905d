"""While a policy file is unreachable, the uses that it could refuse are denied (docs/uses.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from comity.policies import Agent, Arrangement, Fetched, Page, Site, Verdict
from comity.policies.answers.rule import RULES
from comity.policies.formats import FORMATS
from comity.policies.formats.distrusted import distrusted
from comity.policies.formats.format import Format, WellKnown
from comity.policies.formats.installed import mistakes
from comity.policies.formats.tdmrep import FORMAT as TDMREP_FORMAT
from comity.policies.tag import join_tags, read_tag

ORIGIN = "https://example.com"
URL = f"{ORIGIN}/page"
TDMREP, AI_TXT, AUTOMATION = "/.well-known/tdmrep.json", "/ai.txt", "/automation-preferences.txt"
TRUST = "/trust.txt"
USES = ("train", "search", "index", "summarize", "tdm")
ALLOWING = dict.fromkeys(USES, Verdict.ALLOW)
AGENT = Agent("examplebot", uses=USES, defaults=ALLOWING)
NO_ANSWER = [
    (Fetched(status=503), "HTTP status 503"),
    (Fetched(status=500, body=b"[]"), "HTTP status 500"),
    (Fetched(status=429), "HTTP status 429"),
    (Fetched(status=206, body=b"["), "HTTP status 206"),
    (Fetched(status=0, error="no answer within 15 s"), "no answer within 15 s"),
    (Fetched(status=200, body=b"[", error="the body breaks off"), "the body breaks off"),
]
ANSWERS = [Fetched(status=status) for status in (404, 410, 401, 403, 301)] + [
    Fetched(status=200, body=b"<p>Not found")
]
DENIED = {
    TDMREP: {"train", "tdm", "summarize"},
    AI_TXT: set(USES),
    AUTOMATION: set(),
    TRUST: {"train", "tdm"},
}
RULE_OF = {
    TDMREP: "tdmrep.unreachable",
    AI_TXT: "ait.unreachable",
    TRUST: "trust-txt.unreachable",
}


def page(
    files: dict[str, Any],
    agent: Agent = AGENT,
    headers: Any = (),
    body: bytes = b"",
    url: str = URL,
) -> Page:
    return Site.from_files(ORIGIN, files).page(agent, url, headers=headers, body=body)


def denied_uses(found: Page) -> set[str]:
    return {use for use in USES if found.uses[use].verdict is Verdict.DENY}


@pytest.mark.requirement("MEET-8", "WHY-1")
@pytest.mark.parametrize("path", DENIED)
@pytest.mark.parametrize(("fetched", "why"), NO_ANSWER)
def test_what_could_be_refused_is_denied_while_a_file_cannot_be_fetched(
    path: str, fetched: Fetched, why: str
) -> None:
    found = page({path: fetched})
    assert denied_uses(found) == DENIED[path]
    assert (found.uses["crawl"].verdict, found.uses["follow"].verdict) == (
        Verdict.ALLOW,
        Verdict.ALLOW,
    )
    for use in DENIED[path]:
        decision = found.uses[use]
        (reason,) = decision.reasons
        assert (decision.stated, reason.rule) == (False, RULE_OF[path])
        assert (reason.source.url, reason.source.part, reason.source.text) == (
            ORIGIN + path,
            "status",
            why,
        )
        assert RULES[reason.rule].is_unreachable


@pytest.mark.requirement("MEET-8")
@pytest.mark.parametrize("path", DENIED)
@pytest.mark.parametrize("fetched", ANSWERS, ids=lambda fetched: str(fetched.status))
def test_an_answer_that_there_is_no_file_states_nothing(path: str, fetched: Fetched) -> None:
    found = page({path: fetched})
    assert {
        (use.verdict, use.stated, use.reasons[0].rule) for use in map(found.uses.__getitem__, USES)
    } == {(Verdict.ALLOW, False, "comity.default")}


@pytest.mark.requirement("MEET-8")
def test_requests_are_not_refused_and_no_site_is_given_up() -> None:
    site = Site.from_files(ORIGIN, {TDMREP: Fetched(status=503), AI_TXT: Fetched(status=503)})
    assert site.access(AGENT, URL).verdict is Verdict.ALLOW
    assert site.unusable(AGENT) is None
    assert site.refused_by_headers(AGENT, URL, [(b"Content-Usage", b"search=n")]) is None


@pytest.mark.requirement("MEET-8")
def test_a_site_whose_uses_are_all_denied_for_now_is_waited_for() -> None:
    def awaits(files: dict[str, Any], *uses: str, **others: Any) -> bool:
        agent = Agent("examplebot", uses=uses, defaults=ALLOWING, **others)
        return Site.from_files(ORIGIN, files).awaits_files(agent)

    failing = {TDMREP: Fetched(status=503)}
    assert awaits(failing, "train")
    assert awaits(failing, "train", "tdm")
    assert not awaits(failing, "train", "index")
    assert not awaits(failing)
    assert not awaits(failing, "train", "crawl")
    assert not awaits(failing, "train", denies_unreachable=False)
    assert not awaits(
        failing, "train", arrangements=(Arrangement("example.com", uses=frozenset(("train",))),)
    )
    assert not awaits({}, "train")
    assert awaits(
        failing | {"/robots.txt": b"User-agent: *\nContent-Usage: search=n\nAllow: /\n"},
        "train",
        "search",
    )
    # With the file the uses would be refused too, so there is nothing to wait for.
    assert not awaits(
        failing | {"/robots.txt": b"User-agent: *\nContent-Usage: train-ai=n\nAllow: /\n"}, "train"
    )


@pytest.mark.requirement("MEET-8", "TDM-1")
def test_a_page_that_speaks_for_itself_needs_no_file() -> None:
    failing = {TDMREP: Fetched(status=503)}
    free = page(failing, headers=[(b"tdm-reservation", b"0")])
    assert (free.uses["tdm"].verdict, free.uses["tdm"].stated) == (Verdict.ALLOW, True)
    meta = b'<meta name="tdm-reservation" content="1">'
    reserved = page(failing, headers=[(b"Content-Type", b"text/html")], body=meta)
    assert (reserved.uses["tdm"].stated, reserved.uses["tdm"].reasons[0].rule) == (
        True,
        "tdmrep.reserved",
    )
    unset = page(failing, headers=[(b"tdm-reservation", b"x")])
    assert unset.uses["tdm"].reasons[0].rule == "tdmrep.unreachable"


@pytest.mark.requirement("MEET-8", "META-5")
@pytest.mark.parametrize("attribute", ["property", "http-equiv"])
def test_what_can_only_refuse_stands_for_no_file(attribute: str) -> None:
    def page_with(value: str) -> Page:
        meta = f'<meta {attribute}="tdm-reservation" content="{value}">'
        return page(
            {TDMREP: Fetched(status=503)},
            headers=[(b"Content-Type", b"text/html")],
            body=meta.encode(),
        )

    assert page_with("0").uses["tdm"].reasons[0].rule == "tdmrep.unreachable"
    assert page_with("1").uses["tdm"].reasons[0].rule == "tdmrep.reserved"
    assert page_with("1").uses["tdm"].stated


@pytest.mark.requirement("MEET-8", "MEET-3")
def test_a_prohibited_modification_is_stated_though_a_file_cannot_be_fetched() -> None:
    agent = Agent("examplebot", uses=("translate",), defaults={"translate": Verdict.ALLOW})
    html = [(b"Content-Type", b"text/html")]
    found = page(
        {AI_TXT: Fetched(status=503)}, agent, html, b'<meta name="robots" content="notranslate">'
    ).uses["translate"]
    assert (found.verdict, found.stated) == (Verdict.DENY, True)
    assert "comity.modification" in {reason.rule for reason in found.reasons}


@pytest.mark.requirement("MEET-8", "MEET-3")
def test_another_format_neither_takes_the_denial_back_nor_loses_its_own_word() -> None:
    failing = {TDMREP: Fetched(status=503), AI_TXT: Fetched(status=0, error="reset")}
    permitting = page(
        failing | {"/robots.txt": b"User-agent: *\nContent-Signal: ai-train=yes\nAllow: /\n"}
    )
    assert denied_uses(permitting) == set(USES)
    assert not permitting.uses["train"].stated
    assert [reason.rule for reason in permitting.uses["train"].reasons] == [
        "ait.unreachable",
        "tdmrep.unreachable",
        "content-signal.allow",
    ]
    refusing = page(
        failing | {"/robots.txt": b"User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n"}
    )
    assert refusing.uses["train"].stated
    assert refusing.uses["train"].reasons[0].rule == "content-signal.disallow"


@pytest.mark.requirement("MEET-8")
def test_what_the_operator_has_arranged_or_chosen_holds() -> None:
    failing = {TDMREP: Fetched(status=503), AI_TXT: Fetched(status=503)}
    licensed = Agent(
        "examplebot",
        uses=USES,
        arrangements=(Arrangement("example.com", uses=frozenset(("train",))),),
    )
    assert page(failing, licensed).uses["train"].verdict is Verdict.ALLOW
    choosing = Agent("examplebot", uses=USES, defaults=ALLOWING, denies_unreachable=False)
    assert denied_uses(page(failing, choosing)) == set()


@pytest.mark.requirement("MEET-8")
def test_a_copy_that_stands_in_states_what_it_stated() -> None:
    body = b'[{"location": "/page", "tdm-reservation": 0}]'
    since = datetime(2026, 11, 27, tzinfo=UTC)
    found = page({TDMREP: Fetched(status=200, body=body, unreachable_since=since)})
    assert (found.uses["tdm"].verdict, found.uses["tdm"].stated) == (Verdict.ALLOW, True)


@pytest.mark.requirement("MEET-8")
def test_a_file_that_was_not_asked_for_states_nothing() -> None:
    found = page({TDMREP: Fetched(status=0, error="there is no copy of it", was_asked=False)})
    assert denied_uses(found) == set()


@pytest.mark.requirement("MEET-8", "MEET-6")
def test_every_spelling_of_a_path_is_denied() -> None:
    found = page({TDMREP: Fetched(status=503)}, url=f"{ORIGIN}/a/../page")
    assert denied_uses(found) == DENIED[TDMREP]
    assert [reason.rule for reason in found.uses["tdm"].reasons] == ["tdmrep.unreachable"]


@pytest.mark.requirement("MEET-8")
def test_what_a_page_embeds_is_denied_too() -> None:
    headers = [(b"Content-Type", b"text/html"), (b"X-Robots-Tag", b"noimageai")]
    found = page({TDMREP: Fetched(status=503)}, headers=headers)
    assert found.embedded["tdm"].verdict is Verdict.DENY


@pytest.mark.requirement("MEET-8", "WHY-2")
def test_a_tag_says_so_and_no_other_default_lifts_it() -> None:
    tag = page({TDMREP: Fetched(status=503)}).permissions
    read_tag(tag)
    use = tag["uses"]["train"]
    assert (use["verdict"], use["stated"]) == ("deny", False)
    reason = tag["reasons"][use["because"][0]]
    assert (reason["rule"], reason["part"], reason["text"]) == (
        "tdmrep.unreachable",
        "status",
        "HTTP status 503",
    )
    assert tag["policies"][ORIGIN + TDMREP]["status"] == 503
    joined = join_tags(AGENT, page({}, Agent("examplebot", uses=USES)).permissions, tag)
    assert joined["reasons"][joined["uses"]["train"]["because"][0]]["rule"] == "tdmrep.unreachable"


# Formats of other packages

WORDS = (
    '[vocabulary.odd]\ntitle = "Odd"\nspecification = "Odd 1.0"\nrevision = "1"\n'
    "[vocabulary.odd.terms]\nlearn = {}\n"
)


def odd(refuses: tuple[str, ...] | None = None) -> Format:
    return Format(
        name="odd",
        rules={},
        files=(WellKnown("/odd.txt", refuses=refuses),),
        vocabulary=WORDS,
        version=1,
    )


@pytest.mark.requirement("MEET-8", "EXT-1")
@pytest.mark.parametrize(
    ("refuses", "want"),
    [
        (("tdmrep:reservation",), {"train", "tdm", "summarize"}),
        (("*",), set(USES)),
        ((), set()),
        (None, set()),
    ],
)
def test_any_format_says_what_its_file_could_refuse(
    refuses: tuple[str, ...] | None, want: set[str]
) -> None:
    files = {f"{ORIGIN}/odd.txt": Fetched(status=503)}
    site = Site(ORIGIN, files, formats=(*FORMATS, odd(refuses=refuses)))
    found = site.page(AGENT, URL)
    assert denied_uses(found) == want
    assert {found.uses[use].reasons[0].rule for use in want} <= {"comity.unreachable"}


@pytest.mark.requirement("MEET-8", "TDM-1")
def test_another_file_of_the_format_does_not_speak_for_the_missing_one() -> None:
    more = TDMREP_FORMAT.files[0]._replace(path="/more.json")
    formats = [
        format_._replace(files=(*format_.files, more)) if format_ is TDMREP_FORMAT else format_
        for format_ in FORMATS
    ]
    free = Fetched(status=200, body=b'[{"location": "/", "tdm-reservation": 0}]')
    site = Site(
        ORIGIN, {ORIGIN + TDMREP: free, f"{ORIGIN}/more.json": Fetched(status=503)}, formats=formats
    )
    assert site.page(AGENT, URL).uses["tdm"].verdict is Verdict.DENY
    own_word = site.page(AGENT, URL, headers=[(b"tdm-reservation", b"0")])
    assert own_word.uses["tdm"].verdict is Verdict.ALLOW


@pytest.mark.requirement("MEET-8", "EXT-1")
def test_a_format_that_does_not_say_so_may_refuse_by_each_of_its_words() -> None:
    assert [file.refuses for file in distrusted(odd()).files] == [("odd:learn",)]
    assert [file.refuses for file in distrusted(odd(())).files] == [()]
    assert list(mistakes(odd(("odd:learn",)))) == []
    assert "is not a tuple of the terms" in next(mistakes(odd("odd:learn")))  # type: ignore[arg-type]
