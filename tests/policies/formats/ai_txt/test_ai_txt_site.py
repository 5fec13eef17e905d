"""Statements of an ai.txt, in either format, about the uses of a site's pages."""

from __future__ import annotations

import pytest

from comity.policies import Agent, Arrangement, Page, Site, Verdict, instructions
from comity.policies.answers.element_rule import ACTIONS
from comity.policies.syntax.lines import MAX_BYTES

ORIGIN = "https://example.com"
URL = f"{ORIGIN}/news/1.html"
AI_URL = f"{ORIGIN}/ai.txt"
HTML = (b"Content-Type", b"text/html; charset=utf-8")
BODY = (
    b"<!doctype html><html><head><title>Title</title></head><body><p>free</p><p "
    b"class=q>quoted</p></body></html>"
)
USES = ("train", "search", "index")
DEFAULTS = dict.fromkeys(USES, Verdict.ALLOW)


def agent(*uses: str, **others: object) -> Agent:
    return Agent("examplebot", uses=uses or USES, **({"defaults": DEFAULTS} | others))  # type: ignore[arg-type]


def page_of(
    ai: str, *, url: str = URL, media_type: bytes = HTML[1], who: Agent | None = None
) -> Page:
    site = Site.from_files(ORIGIN, {"/ai.txt": ai.encode()})
    return site.page(who or agent(), url, headers=[(b"Content-Type", media_type)], body=BODY)


def refusals(page: Page) -> dict[str, tuple[str, int]]:
    """Return use -> the rule that refuses it, and its line."""
    denied = {
        use: page.uses[use]
        for use in (*USES, "crawl", "follow")
        if page.uses[use].verdict is Verdict.DENY
    }
    assert all(
        decision.stated and decision.reasons[0].source.url == AI_URL for decision in denied.values()
    )
    return {
        use: (decision.reasons[0].rule, decision.reasons[0].source.line)
        for use, decision in denied.items()
    }


def block(element: str, actions: str, path: str = "/news/ html") -> str:
    return f"User-agent: *\n  Path: {path}\n    Element: {element}\n      Disallow: {actions}\n"


@pytest.mark.requirement("AIT-5", "AIT-7", "MEET-3", "MEET-4")
@pytest.mark.parametrize(
    ("ai", "refused"),
    [
        (block("*", "Train"), {"train"}),
        (block("*", "Index"), {"index", "search"}),
        (block("*", "*"), {"train", "index", "search"}),
        (block("*", "Cite"), set()),
        (block(".q", "*"), set()),
        (block("*", "*", "/other/ html"), set()),
        (block("*", "*", "/news/ json"), set()),
        (block("*", "*").replace("*", "otherbot", 1), set()),
        (block("*", "*").replace("*", "ExampleBot", 1), {"train", "index", "search"}),
    ],
)
def test_rules_about_the_whole_document_refuse_uses(ai: str, refused: set[str]) -> None:
    page = page_of(ai)
    assert refusals(page) == dict.fromkeys(refused, ("ait.disallow", 4))
    assert {use for use in USES if not page.redacted([use])} == refused
    assert all(page.redacted([use]) for use in USES if use not in refused)


@pytest.mark.requirement("AIT-16", "MEET-3", "MEET-4")
@pytest.mark.parametrize(
    ("actions", "refused"), [("*", True), (" ".join(ACTIONS), False), ("Train *", True)]
)
def test_every_action_refuses_to_preserve_and_all_of_them_by_name_do_not(
    actions: str, refused: bool
) -> None:
    page = page_of(block("*", actions))
    for use in ("preserve", "a-use-of-nobody"):
        assert page.uses[use].stated is refused
        assert (page.uses[use].reasons[0].rule == "ait.disallow") is refused
    assert page.uses["present"].stated
    assert {page.uses[use].verdict for use in ("crawl", "follow")} == {Verdict.ALLOW}


@pytest.mark.requirement("AIT-13", "MEET-3")
@pytest.mark.parametrize(
    "element", ["p:has(", "p!", "p::first-line a", "html", ":root", "p" * 3000, "p[x"]
)
def test_what_cannot_be_told_is_the_whole_document(element: str) -> None:
    page = page_of(block(element, "Train"))
    assert refusals(page) == {"train": ("ait.disallow", 4)}
    assert [one.is_whole for one in page.elements] == [True]
    expected = [] if element in ("html", ":root") else [("ait.selector", 4)]
    assert [
        (finding.rule, finding.line) for finding in page.findings if finding.rule == "ait.selector"
    ] == expected
    assert all(finding.url == AI_URL for finding in page.findings if finding.rule == "ait.selector")
    assert page.redacted(["train"]) == b""


@pytest.mark.requirement("AIT-5", "AIT-13")
def test_what_is_left_out_of_a_selector_is_a_finding() -> None:
    page = page_of(block("p:hover", "Train"))
    assert [(one.selector, one.is_whole) for one in page.elements] == [("p:hover", False)]
    assert [one.message for one in page.findings if one.rule == "ait.selector"] == [
        "`p:hover` is read without :hover"
    ]
    assert b"<p" not in page.redacted(["train"])


def guide(element: str, actions: str) -> str:
    return (
        block(element, "Cite")
        + f"      Guide: {actions}\n        Lang: en\n        Guideline: Go ahead.\n"
    )


@pytest.mark.requirement("AIT-8", "AIT-9")
@pytest.mark.parametrize(
    ("ai", "permitted"),
    [
        (guide("*", "Summarize Index"), {"summarize", "index"}),
        (guide("*", "*"), {action.lower() for action in ACTIONS} - {"cite"}),
        (guide("*", "Train"), {"train"}),  # but no related use, such as train-ai
        (guide("html", "Train"), {"train"}),
        (guide("p", "Train"), set()),
        (guide("p[", "Train"), set()),  # an unknown action is not permitted
        (guide(":hover", "Train"), set()),
        (guide("*", "Train") + block("*", "Train"), set()),
        (guide("*", "Train Translate") + block("*", "Analyze"), {"train", "translate"}),
        (guide("*", "Train").replace("User-agent: *", "User-agent: otherbot"), set()),
    ],
)
def test_a_guide_of_the_whole_document_is_a_stated_permission(ai: str, permitted: set[str]) -> None:
    uses = {*map(str.lower, ACTIONS), "train-ai", "search", "crawl"}
    page = page_of(ai, who=agent(*sorted(uses), defaults={}))
    stated = {
        use for use in uses if page.uses[use].stated and page.uses[use].verdict is Verdict.ALLOW
    } - {"crawl"}
    assert stated == permitted
    for use in permitted:
        assert {reason.rule for reason in page.uses[use].reasons} == {"ait.guide"}
        assert page.permissions["uses"][use]["stated"] is True
        prompt = instructions(page, use, "en")
        assert "- Permitted: the website permits it." in prompt
        assert 'Guideline "Go ahead."' in prompt


@pytest.mark.requirement("AIT-8", "MEET-3")
def test_a_guide_lifts_no_refusal_of_another_source() -> None:
    site = Site.from_files(
        ORIGIN,
        {
            "/ai.txt": guide("*", "*").encode(),
            "/robots.txt": b"User-agent: *\nContent-Usage: train-ai=n\n",
        },
    )
    page = site.page(
        agent("train", "summarize", "train-ai", defaults={}), URL, headers=[HTML], body=BODY
    )
    assert [
        (page.uses[use].verdict, page.uses[use].stated)
        for use in ("train", "train-ai", "summarize")
    ] == [
        (Verdict.DENY, True),
        (Verdict.DENY, True),
        (Verdict.ALLOW, True),
    ]


@pytest.mark.requirement("AIT-9", "MEET-1")
def test_no_request_is_refused_by_it() -> None:
    site = Site.from_files(ORIGIN, {"/ai.txt": block("*", "*", "/").encode()})
    assert site.access(agent(), URL).verdict is Verdict.ALLOW
    page = site.page(agent(), URL, headers=[HTML], body=BODY)
    assert page.uses["crawl"].verdict is page.follow.verdict is Verdict.ALLOW


@pytest.mark.requirement("AIT-9", "MEET-3")
def test_all_sources_are_heard() -> None:
    robots = b"User-agent: *\nContent-Usage: train-ai=y\n"
    site = Site.from_files(ORIGIN, {"/robots.txt": robots, "/ai.txt": block("*", "Train").encode()})
    page = site.page(agent(), URL, headers=[HTML, (b"X-Robots-Tag", b"noai")], body=BODY)
    decision = page.uses["train"]
    assert decision.verdict is Verdict.DENY
    rules = {reason.rule for reason in decision.reasons}
    assert "ait.disallow" in rules
    assert len(rules) > 1


@pytest.mark.requirement("AIT-9", "MEET-5")
def test_an_arrangement_comes_before_what_a_site_states() -> None:
    licence = agent(
        arrangements=(Arrangement("example.com", uses=frozenset(("train",)), reference="C-1"),)
    )
    page = page_of(block("*", "*") + "    Element: .q\n      Disallow: *\n", who=licence)
    assert refusals(page).keys() == {"index", "search"}
    assert page.refusable(USES) == ("search", "index")
    assert page.redacted(["train"]) == BODY
    assert page.redacted(["index"]) == b""
    page = page_of(block(".q", "*"), who=licence)
    assert page.redacted(["train"]) == BODY
    assert b"quoted" not in page.redacted(["train", "index"])
    assert b"free" in page.redacted(["index"])


@pytest.mark.requirement("AIT-5", "MEET-5")
def test_the_elements_of_a_page() -> None:
    page = page_of(
        block(".q", "Train")
        + "    Element: *\n      Disallow: Clip\n    Element: .none\n      Disallow: *\n"
    )
    part, whole = page.elements
    assert (part.selector, part.is_whole, [node.text for node in part.nodes]) == (
        ".q",
        False,
        ["quoted"],
    )
    assert part.deny == {"train"}
    assert page.element_rules is not None
    assert [page.element_rules.text[start:end] for start, end in part.spans] == ["quoted"]
    assert (whole.selector, whole.is_whole, whole.nodes) == ("*", True, ())
    assert [element["selector"] for element in page.permissions["elements"]] == [".q", "*"]
    assert page_of("").elements == ()
    assert page_of("").permissions["elements"] == []


@pytest.mark.requirement("AIT-5", "USE-14")
@pytest.mark.parametrize(
    ("ai", "is_refused"),
    [
        (block("*", "*", "/"), True),
        (block("*", "Train Index", "/"), True),
        (block("*", "Train", "/"), False),
        (block("*", "*", "/ html"), False),
        (block("*", "*", "/news/"), False),
        (block("p", "*", "/"), False),
        (block("*", "*", "/").replace("*", "otherbot", 1), False),
    ],
)
def test_a_site_that_refuses_everything_everywhere(ai: str, is_refused: bool) -> None:
    site = Site.from_files(ORIGIN, {"/ai.txt": ai.encode()})
    decision = site.unusable(agent())
    assert (decision is not None) is is_refused
    if decision is not None:
        assert [
            (reason.rule, reason.source.url, reason.source.line) for reason in decision.reasons
        ] == [("ait.disallow", AI_URL, 4)]
    assert site.unusable(agent("train", "crawl")) is None
    licence = Arrangement("example.com", uses=frozenset(("train",)), reference="C-1")
    assert site.unusable(agent(arrangements=(licence,))) is None


@pytest.mark.requirement("AIT-5", "MEET-3")
def test_two_files_together_refuse_everything() -> None:
    files = {
        "/robots.txt": b"User-agent: *\nContent-Usage: search=n\n",
        "/ai.txt": block("*", "Train Index", "/").encode(),
    }
    assert Site.from_files(ORIGIN, files).unusable(agent("train", "search")) is not None
    assert (
        Site.from_files(ORIGIN, {"/robots.txt": files["/robots.txt"]}).unusable(
            agent("train", "search")
        )
        is None
    )


SPAWNING = "User-Agent: *\nDisallow: *.jpg\nDisallow: /drafts/\nAllow: /drafts/logo.jpg\n"


@pytest.mark.requirement("SPAWN-2", "MEET-3")
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/a.jpg", 2),
        ("/a.JPG?x=1", 2),
        ("/a.jpgx", 0),
        ("/news/1.html", 0),
        ("/drafts/1.html", 3),
        ("/drafts/logo.jpg", 0),
        ("/drafts/other.jpg", 3),
    ],
)
def test_spawnings_form_refuses_training_on_what_it_matches(path: str, line: int) -> None:
    page = page_of(SPAWNING, url=ORIGIN + path)
    assert refusals(page) == ({"train": ("spawning.disallow", line)} if line else {})
    assert page.elements == ()
    assert page.uses["train"].stated is bool(line)
    assert page.redacted(["train"]) == (b"" if line else BODY)
    assert page.redacted(["index"]) == BODY


@pytest.mark.requirement("SPAWN-2", "MEET-4")
def test_spawnings_allow_states_nothing() -> None:
    page = page_of("User-Agent: *\nDisallow: *.jpg\nAllow: *.html\n", who=agent(defaults={}))
    assert (page.uses["train"].verdict, page.uses["train"].stated) == (Verdict.DENY, False)


@pytest.mark.requirement("SPAWN-2")
@pytest.mark.parametrize(
    ("ai", "is_refused"),
    [
        ("User-Agent: *\nDisallow: /\n", True),
        ("User-Agent: *\nDisallow: *\n", True),
        ("User-Agent: *\nDisallow: Train\n", True),
        ("User-Agent: examplebot\nDisallow: /\n", True),
        ("User-Agent: otherbot\nDisallow: /\n", False),
        ("User-Agent: *\nDisallow: /\nAllow: /open/\n", False),
        ("User-Agent: *\nDisallow: *.html\n", False),
    ],
)
def test_a_site_that_refuses_all_training_everywhere(ai: str, is_refused: bool) -> None:
    site = Site.from_files(ORIGIN, {"/ai.txt": ai.encode()})
    decision = site.unusable(agent("train"))
    assert (decision is not None) is is_refused
    if decision is not None:
        assert (decision.reasons[0].rule, decision.reasons[0].source.line) == (
            "spawning.disallow",
            2,
        )
    assert site.unusable(agent("train", "search")) is None


@pytest.mark.requirement("SPAWN-1", "AIT-15")
@pytest.mark.parametrize(
    "ai", ["", "<!doctype html><p>Not here</p>", "We like AI.\nTrain on it.\n", "hello: world\n"]
)
def test_other_files_of_that_name_state_nothing(ai: str) -> None:
    page = page_of(ai)
    assert refusals(page) == {}
    assert page.elements == ()
    assert page.redacted(USES) == BODY


@pytest.mark.requirement("SPAWN-1", "AIT-15")
def test_both_formats_in_one_file_are_heard() -> None:
    ai = "User-agent: *\nDisallow: *.html\n" + block(".q", "Index").partition("\n")[2]
    page = page_of(ai)
    assert refusals(page) == {"train": ("spawning.disallow", 2)}
    assert [element.selector for element in page.elements] == [".q"]


@pytest.mark.requirement("SPAWN-1", "AIT-15")
def test_a_line_in_spawnings_form_has_no_findings_of_the_other_format() -> None:
    ai = f"Disallow: *.html\nDisallow: Train\n{block('.q', 'Index')}"
    site = Site.from_files(ORIGIN, {"/ai.txt": ai.encode()})
    assert [(finding.rule, finding.line) for finding in site.findings] == [
        ("ait.indentation", 2),
        ("ait.orphan", 2),
    ]


@pytest.mark.requirement("AIT-15")
def test_the_limit_of_a_file_in_both_formats_is_found() -> None:
    ai = f"Disallow: *.html\n{block('.q', 'Index')}#{'a' * MAX_BYTES}\n"
    site = Site.from_files(ORIGIN, {"/ai.txt": ai.encode()})
    assert [finding.rule for finding in site.findings] == ["ait.limit"]
