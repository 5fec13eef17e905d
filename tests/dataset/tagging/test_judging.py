"""The tag of a captured page: the dates of policies, other crawlers, and missing facts."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from comity.dataset.records import DatasetError
from comity.dataset.tagging.captured import CapturedPage
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.policies import Agent, Arrangement, Fetched, Verdict
from comity.policies.tag import read_tag
from comity.policies.vocabulary.known_crawlers import training_crawlers
from tests.dataset.tagging.archives import HTML, NOW, THEN, Policies

ORIGIN = "https://a.test"
OWN = Agent(
    "examplebot", uses=("train", "index"), defaults={"train": Verdict.ALLOW, "index": Verdict.ALLOW}
)
OPEN = {"/robots.txt": "User-agent: *\nAllow: /\n"}
CLOSED = {"/robots.txt": "User-agent: *\nDisallow: /\n"}
NO_TRAINING = {"/robots.txt": "User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n"}
PAGE = CapturedPage(f"{ORIGIN}/", THEN, (HTML,), b"<p>Hello</p>")


def tag(
    page: CapturedPage = PAGE,
    policies: Any = None,
    agent: Agent = OWN,
    fields: Any = None,
    **question: Any,
) -> dict[str, Any]:
    judge = Judge(Question.of(agent, now=NOW, **question), policies or Policies({ORIGIN: OPEN}))
    judged = pickle.loads(pickle.dumps(judge)).judge(page)
    assert judged is not None
    fields = {"text": "Hello"} if fields is None else fields
    made: dict[str, Any] = judged.tag(fields, judged.rules)
    read_tag(made)
    return made


def verdict(made: dict[str, Any], use: str = "train") -> str:
    word: str = made["uses"][use]["verdict"]
    return word


def deciding(made: dict[str, Any], use: str = "train") -> dict[str, Any]:
    reason: dict[str, Any] = made["reasons"][made["uses"][use]["because"][0]]
    return reason


@pytest.mark.requirement("TAG-2")
@pytest.mark.parametrize(
    ("then", "now", "of_capture", "of_today"),
    [
        (OPEN, OPEN, "allow", "allow"),
        (OPEN, NO_TRAINING, "allow", "deny"),
        (NO_TRAINING, OPEN, "deny", "allow"),
        (OPEN, CLOSED, "allow", "deny"),
        (CLOSED, OPEN, "deny", "allow"),
        (CLOSED, NO_TRAINING, "deny", "deny"),
    ],
)
def test_any_refusal_of_several_dates_refuses(
    then: Any, now: Any, of_capture: str, of_today: str
) -> None:
    policies = Policies({ORIGIN: then}, {ORIGIN: now})
    made = {as_of: tag(policies=policies, as_of=as_of) for as_of in ("capture", "today", "both")}
    assert {as_of: verdict(one) for as_of, one in made.items()} == {
        "capture": of_capture,
        "today": of_today,
        "both": "deny" if "deny" in (of_capture, of_today) else "allow",
    }
    assert {one["as_of"] for one in made.values()} == set(made)
    copy = made["both"]["policies"][f"{ORIGIN}/robots.txt"]
    [earlier] = copy["earlier"]
    assert (copy["fetched_at"], earlier["fetched_at"]) == (NOW.isoformat(), THEN.isoformat())
    if then is not now and made["both"]["uses"]["train"]["verdict"] == "deny":
        assert (
            deciding(made["both"])["fetched_at"]
            == (THEN if of_capture == "deny" and of_today == "allow" else NOW).isoformat()
        )


def test_what_may_not_be_fetched_may_not_be_used() -> None:
    made = tag(policies=Policies({ORIGIN: CLOSED}))
    assert {verdict(made, use) for use in made["uses"]} == {"deny"}
    assert deciding(made)["rule"] == "robots.disallow"
    arranged = Agent(
        "examplebot",
        uses=("train",),
        arrangements=(Arrangement("a.test", uses=frozenset({"train"})),),
    )
    assert (
        verdict(tag(policies=Policies({ORIGIN: CLOSED}), agent=arranged, captured_by="CCBot"))
        == "allow"
    )


NAMED = {
    "/robots.txt": "User-agent: CCBot\nUser-agent: GPTBot\nDisallow: /secret\n"
    "Content-Usage: train-ai=n\n\n"
    "User-agent: *\nAllow: /\n"
}
SECRET = PAGE._replace(url=f"{ORIGIN}/secret")


def test_the_crawler_that_captured_it_was_refused() -> None:
    policies = Policies({ORIGIN: NAMED})
    assert verdict(tag(SECRET, policies)) == "allow"
    for by in (
        tag(SECRET, policies, captured_by="CCBot"),
        tag(SECRET._replace(crawler="CCBot/2.0 (https://commoncrawl.org/faq/)"), policies),
        tag(
            SECRET._replace(
                crawler="Mozilla/5.0 (compatible; CCBot/2.0; +https://commoncrawl.org)"
            ),
            policies,
        ),
    ):
        assert {verdict(by, use) for use in ("crawl", "train", "index")} == {"deny"}
        assert (deciding(by, "crawl")["agent"], deciding(by, "crawl")["text"]) == (
            "CCBot",
            "Disallow: /secret",
        )
        assert deciding(by)["agent"] == "CCBot"
    assert (
        verdict(tag(SECRET._replace(crawler="CCBot/2.0"), policies, captured_by="otherbot"))
        == "allow"
    )


@pytest.mark.requirement("TAG-1")
def test_a_site_that_names_the_members_of_a_class_is_heard_on_request() -> None:
    policies = Policies({ORIGIN: NAMED})
    assert verdict(tag(policies=policies)) == "allow"
    for also in (["GPTBot"], ["ai-training"], ["Google-Extended", "gptbot"]):
        made = tag(policies=policies, also=also)
        assert verdict(made) == "deny"
        assert deciding(made)["agent"].lower() in ("gptbot", "ccbot")
        assert verdict(made, "index") == "allow"  # the signal speaks of training alone
    assert verdict(tag(policies=policies, also=["Google-Extended"])) == "allow"
    names = {crawler.token for crawler in training_crawlers(with_retired=True)}
    assert set(Question.of(OWN, also=["AI-Training", "x"]).also) == {*names, "x"}
    with pytest.raises(DatasetError, match="is not a product token"):
        Question.of(OWN, also=["GPT Bot"])
    with pytest.raises(DatasetError, match="names no crawler"):
        Question.of(OWN, captured_by="***")


def test_what_others_are_permitted_permits_nothing() -> None:
    said = {
        "/robots.txt": (
            "User-agent: GPTBot\nContent-Signal: ai-train=yes\nAllow: /\n\n"
            "User-agent: *\nDisallow: /\n"
        )
    }
    assert verdict(tag(policies=Policies({ORIGIN: said}), also=["GPTBot"])) == "deny"
    silent = Agent("examplebot", uses=("train",))
    open_to_gptbot = {"/robots.txt": "User-agent: GPTBot\nContent-Signal: ai-train=yes\nAllow: /\n"}
    made = tag(policies=Policies({ORIGIN: open_to_gptbot}), agent=silent, also=["GPTBot"])
    assert (verdict(made), deciding(made)["rule"]) == ("deny", "comity.default")


def test_those_whom_no_file_names_are_judged_as_one_of_them() -> None:
    """Where the own agent is named, and permitted more than others."""
    said = {"/robots.txt": "User-agent: examplebot\nAllow: /\n\nUser-agent: *\nDisallow: /\n"}
    policies = Policies({ORIGIN: said})
    assert verdict(tag(policies=policies)) == "allow"
    assert verdict(tag(policies=policies, captured_by="anybot")) == "deny"
    assert verdict(tag(policies=policies, also=["one", "two"])) == "deny"
    assert verdict(tag(policies=policies, also=["ExampleBot"])) == "allow"


@pytest.mark.parametrize("field", ["gptbot: noai", "noai"])
def test_what_the_page_says_counts(field: str) -> None:
    page = PAGE._replace(fields=(HTML, (b"X-Robots-Tag", field.encode())))
    assert verdict(tag(page, also=["GPTBot"])) == "deny"
    assert verdict(tag(page)) == ("allow" if ":" in field else "deny")


def test_restrictions_of_other_crawlers_restrict() -> None:
    page = PAGE._replace(fields=(HTML, (b"X-Robots-Tag", b"gptbot: max-snippet:20")))
    agent = Agent(
        "examplebot", uses=("present-snippet",), defaults={"present-snippet": Verdict.ALLOW}
    )
    made = tag(page, agent=agent, also=["GPTBot"])
    assert made["uses"]["present-snippet"]["verdict"] == "allow"
    assert made["uses"]["present-snippet"]["max_chars"] == 20
    assert "max_chars" not in tag(page, agent=agent)["uses"]["present-snippet"]


# Missing facts


@pytest.mark.requirement("TAG-3")
def test_without_policies_nothing_is_permitted() -> None:
    policies = Policies({})
    made = tag(policies=policies)
    assert {verdict(made, use) for use in made["uses"]} == {"deny"}
    assert (deciding(made)["rule"], made["uses"]["train"]["stated"]) == (
        "comity.no-policies",
        False,
    )
    assert (
        tag(policies=Policies({ORIGIN: OPEN}), as_of="both")["uses"]["train"]["verdict"] == "deny"
    )
    assert (
        tag(PAGE._replace(captured_at=THEN - timedelta(days=1)))["uses"]["train"]["verdict"]
        == "deny"
    )


@pytest.mark.requirement("TAG-3")
def test_the_operator_may_take_an_unknown_site_for_a_silent_one() -> None:
    made = tag(policies=Policies({}), missing="allow")
    assert (verdict(made), made["uses"]["train"]["stated"]) == ("allow", False)
    assert [made["reasons"][number]["rule"] for number in made["uses"]["train"]["because"]] == [
        "comity.default",
        "comity.no-policies",
    ]
    assert made["policies"] == {}
    silent = Agent("examplebot", uses=("train",))
    # by the default
    assert verdict(tag(policies=Policies({}), agent=silent, missing="allow")) == "deny"
    refusing = PAGE._replace(fields=(HTML, (b"X-Robots-Tag", b"noai")))
    assert verdict(tag(refusing, Policies({}), missing="allow")) == "deny"


@pytest.mark.requirement("TAG-3")
def test_the_operator_may_keep_unknown_sites_apart() -> None:
    for policies in (Policies({}), Policies({ORIGIN: OPEN}, missing=[f"{ORIGIN}/robots.txt"])):
        assert Judge(Question.of(OWN, now=NOW, missing="keep-apart"), policies).judge(PAGE) is None
    assert (
        Judge(Question.of(OWN, now=NOW, missing="keep-apart"), Policies({ORIGIN: OPEN})).judge(PAGE)
        is not None
    )


@pytest.mark.requirement("MEET-8")
def test_a_copy_that_says_that_the_server_failed_is_no_silence() -> None:
    tdmrep = "/.well-known/tdmrep.json"
    for status, want in ((503, ("deny", "tdmrep.unreachable")), (404, ("allow", "comity.default"))):
        made = tag(policies=Policies({ORIGIN: OPEN | {tdmrep: Fetched(status=status)}}))
        reason = made["reasons"][made["uses"]["train"]["because"][0]]
        assert (verdict(made), reason["rule"]) == want
        assert made["uses"]["train"]["stated"] is False
        assert made["policies"][ORIGIN + tdmrep]["status"] == status


def test_a_site_of_which_robots_txt_alone_is_missing() -> None:
    """The statements of its other files count, for any treatment of the missing robots.txt."""
    unknown = Fetched(status=0, error="there is no copy of it")
    for ai, allowed in (("", "allow"), ("User-agent: *\nDisallow: train\n", "deny")):
        policies = Policies(
            {ORIGIN: {"/robots.txt": unknown, "/ai.txt": ai}}, missing=[f"{ORIGIN}/robots.txt"]
        )
        made = tag(policies=policies)
        assert (
            verdict(made),
            "robots.unreachable" in [reason["rule"] for reason in made["reasons"]],
        ) == ("deny", True)
        made = tag(policies=policies, missing="allow")
        assert verdict(made) == allowed
        assert f"{ORIGIN}/robots.txt" not in made["policies"]
        assert made["reasons"][-1]["rule"] == "comity.no-policies"


@pytest.mark.parametrize(
    ("page", "rule"),
    [
        (PAGE._replace(url=""), "comity.no-url"),
        (PAGE._replace(url="ftp://a.test/"), "comity.no-url"),
        (PAGE._replace(url="dns:a.test"), "comity.no-url"),
        (PAGE._replace(url="https://"), "comity.no-url"),
        (PAGE._replace(url="https://[a/"), "comity.no-url"),
        (PAGE._replace(url="\ud800"), "comity.no-url"),
        (PAGE._replace(captured_at=None), "comity.no-date"),
        (PAGE._replace(captured_at=NOW + timedelta(days=2)), "comity.no-date"),
        (PAGE._replace(captured_at=datetime(1980, 1, 1, tzinfo=UTC)), "comity.no-date"),
        (PAGE._replace(unread="it is cut off"), "comity.unread"),
    ],
)
def test_what_nobody_knows_permits_nothing(page: CapturedPage, rule: str) -> None:
    for missing in ("deny", "allow"):
        made = tag(page, missing=missing)
        assert {verdict(made, use) for use in made["uses"]} == {"deny"}
        assert rule in [reason["rule"] for reason in made["reasons"]]


def test_no_date_is_needed_for_policies_of_today() -> None:
    made = tag(PAGE._replace(captured_at=None), Policies({}, {ORIGIN: OPEN}), as_of="today")
    assert verdict(made) == "allow"


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@a.test/secret",
        "HTTPS://A.TEST:443/secret",
        "https://a.test/x/../secret",
        "https://a.test/%73ecret",
        " https://a.test/secret",
        "\x0b\r\nhttps://a.test/secret",
        "https://a.test/\tsec\r\nret",
        "ht\ntps://a.test/secret",
    ],
)
def test_other_spellings_of_a_url_are_the_same_page(url: str) -> None:
    assert (
        verdict(tag(SECRET._replace(url=url), Policies({ORIGIN: NAMED}), captured_by="CCBot"))
        == "deny"
    )


@pytest.mark.parametrize(
    "url",
    [
        "https://a.test\\secret",
        "https://a%2Etest/secret",
        "https://a .test/secret",
        "https://a.test|x/",
        "https://b.test\\@a.test/",
    ],
)
def test_a_url_of_no_host_is_no_site_of_which_nothing_is_known(url: str) -> None:
    made = tag(PAGE._replace(url=url), Policies({ORIGIN: OPEN}), missing="allow")
    assert (verdict(made), deciding(made)["rule"]) == ("deny", "comity.no-url")


# Parts of pages

QUOTES = {
    "/ai.txt": "User-agent: *\n  Path: /\n    Element: p.quote\n      Disallow: train\n",
    **OPEN,
}


def test_elements_are_found_in_records() -> None:
    body = b"<html><body><main><p>Free</p><p class=quote>Not to be used</p></main></body></html>"
    made = tag(
        PAGE._replace(body=body),
        Policies({ORIGIN: QUOTES}),
        fields={"text": "Free\nNot to be used", "url": "x"},
    )
    [element] = made["elements"]
    assert (element["deny"], element["spans"]) == (["train"], [["text", 5, 19]])


def test_elements_of_a_page_that_is_not_at_hand_may_be_anywhere() -> None:
    made = tag(
        CapturedPage(f"{ORIGIN}/", THEN),
        Policies({ORIGIN: QUOTES}),
        fields={"text": "Free", "url": "x", "more": ["a"]},
    )
    [element] = made["elements"]
    assert element["spans"] == [["text"], ["more"]]
    assert made["is_unread"] is True


def test_elements_of_both_dates_and_of_all_crawlers_count() -> None:
    asides = {
        "/ai.txt": "User-agent: GPTBot\n  Path: /\n    Element: aside\n      Disallow: train\n",
        **OPEN,
    }
    body = (
        b"<html><body><main><p>Free</p><p "
        b"class=quote>Quoted</p><aside>Aside</aside></main></body></html>"
    )
    page, policies = PAGE._replace(body=body), Policies({ORIGIN: QUOTES}, {ORIGIN: asides})
    fields = {"text": "Free\nQuoted", "html": body.decode()}
    made = tag(page, policies, fields=fields, as_of="both", also=["GPTBot"])
    assert {element["selector"] for element in made["elements"]} == {"p.quote", "aside"}
    assert {
        element["selector"]
        for element in tag(page, policies, fields=fields, as_of="both")["elements"]
    } == {"p.quote"}


def test_elements_are_cut_out_where_that_is_asked() -> None:
    body = b"<html><body><main><p>Free</p><p class=quote>Not to be used</p></main></body></html>"
    fields = {"text": "Free\nNot to be used"}
    made = tag(PAGE._replace(body=body), Policies({ORIGIN: QUOTES}), fields=fields, redacts=True)
    assert fields["text"].strip() == "Free"
    assert made["elements"][0]["spans"] == []


def test_pages_of_which_only_the_url_is_known_share_their_tag() -> None:
    judge, other = (Judge(Question.of(OWN, now=NOW), Policies({ORIGIN: NAMED})) for _ in range(2))

    def of_url(judge: Judge, path: str) -> dict[str, Any]:
        judged = judge.judge(CapturedPage(f"{ORIGIN}/{path}", THEN))
        assert judged is not None
        return judged.tag({})

    made = of_url(judge, "a")
    assert made is of_url(judge, "b") is of_url(judge, "a/b")
    assert made == of_url(other, "b")


def test_a_tag_that_was_there_before_goes_on_refusing() -> None:
    judge = Judge(Question.of(OWN, now=NOW), Policies({ORIGIN: OPEN}))
    refusing = tag(policies=Policies({ORIGIN: NO_TRAINING}))
    judged = judge.judge(PAGE)
    assert judged is not None
    assert verdict(judged.tag({}, None, [refusing])) == "deny"
    assert verdict(judged.tag({}, None, [refusing]), "index") == "allow"
