"""The files of the intents, tested by decisions: refusals, open uses, and unbound crawlers."""

from __future__ import annotations

from typing import Any

import pytest

from comity.authoring.intents import (
    ELEMENT,
    FIELD,
    FORMATS,
    INTENTS,
    TRAINING_CRAWLERS,
    Form,
    Intent,
    request_limit,
)
from comity.policies import Agent, Page, Site, Verdict
from comity.policies.answers.rates import RequestRate
from comity.policies.vocabulary.known_crawlers import known
from tests.selection import one_in

ORIGIN = "https://example.com"
URL = f"{ORIGIN}/a/page.html"
USES = (
    "train-ai",
    "train-genai",
    "search",
    "index",
    "ai-input",
    "present-snippet",
    "present",
    "preserve",
    "tdm",
    "follow",
)
BY_NAME = {intent.name: intent for intent in INTENTS}

# The refused and permitted uses of USES for everybody, by intent and format. The others are
# undecided. If a format refuses more than the intent, its remark says so.
# Training is a part of mining, so mining as a whole is refused too.
TRAINING = {"train-ai", "train-genai", "tdm"}
NO_AI = TRAINING | {"ai-input"}
ACAP_OTHER = (NO_AI | {"search"}, {"index", "present-snippet", "present", "preserve", "follow"})
NOTHING: tuple[set[str], set[str]] = (set(), set())
STATED: dict[tuple[str, str], tuple[set[str], set[str]]] = {
    ("no-training", "robots.txt"): NOTHING,
    ("no-training", "ACAP"): ACAP_OTHER,
    ("no-training", "usage preference strings"): (NO_AI, set()),
    ("no-training", "Content-Usage"): (TRAINING, set()),
    ("no-training", "Content Signals"): (TRAINING, set()),
    ("no-training", "ai.txt"): (TRAINING, set()),
    ("no-training", "ai.txt of Spawning"): (TRAINING, set()),
    ("no-training", "robots meta"): (NO_AI, set()),
    ("no-training", "TDMRep"): (NO_AI, set()),
    ("no-training", "RSL"): (TRAINING, set()),
    ("no-training-but-search", "robots.txt"): NOTHING,
    ("no-training-but-search", "ACAP"): ACAP_OTHER,
    ("no-training-but-search", "automation-preferences.txt"): NOTHING,
    ("no-training-but-search", "usage preference strings"): (NO_AI, {"search", "index"}),
    ("no-training-but-search", "Content-Usage"): (TRAINING, {"search", "index"}),
    ("no-training-but-search", "Content Signals"): (TRAINING, {"search", "index"}),
    ("no-training-but-search", "ai.txt"): (TRAINING, {"index"}),
    ("no-training-but-search", "RSL"): (NO_AI, {"search", "index"}),
    ("no-snippets", "ACAP"): ({"present-snippet"}, set()),
    ("no-snippets", "robots meta"): ({"present-snippet", "present", "ai-input"}, set()),
    ("slower", "robots.txt"): NOTHING,
    ("slower", "automation-preferences.txt"): NOTHING,
    ("nobody-but", "robots.txt"): NOTHING,
    ("nobody-but", "ACAP"): (set(USES), set()),
    ("nobody-but", "automation-preferences.txt"): NOTHING,
}
FORMS = [
    pytest.param(
        intent, form, id=f"{intent.name}-{form.format}-{form.artefacts[0].location}-{number}"
    )
    for intent in INTENTS
    for number, form in enumerate(intent.forms)
]


class Published:
    """A site with the artefacts of one form, and nothing else."""

    def __init__(self, intent: Intent, form: Form, **parameters: str) -> None:
        texts = [
            (artefact.location, artefact.text(intent.values(**parameters)))
            for artefact in form.artefacts
        ]
        self.site = Site.from_files(
            ORIGIN,
            {location: text.encode() for location, text in texts if location.startswith("/")},
        )
        fields = [text.strip().partition(": ") for location, text in texts if location == FIELD]
        self.headers = [
            (b"Content-Type", b"text/html"),
            *((name.encode(), value.encode()) for name, _, value in fields),
        ]
        head = "".join(text for location, text in texts if location == ELEMENT)
        self.body = (
            f"<!DOCTYPE html><html><head>{head}<title>A page</title></head><body><p>Text</p>"
            "</body></html>"
        ).encode()

    def page(self, agent: Agent) -> Page:
        return self.site.page(agent, URL, headers=self.headers, body=self.body)

    def access(self, token: str, **facts: Any) -> Verdict:
        return self.site.access(Agent(token), URL, **facts).verdict

    def uses(self, token: str) -> tuple[set[str], set[str]]:
        """Return the uses that a statement refuses, and the uses that one permits."""
        uses = self.page(Agent(token)).uses
        stated = {use: uses[use].verdict for use in USES if uses[use].stated}
        refused = {use for use, verdict in stated.items() if verdict is Verdict.DENY}
        return refused, stated.keys() - refused


@pytest.mark.parametrize(("intent", "form"), one_in(3, FORMS))
def test_a_form_says_what_the_table_has_and_no_more(intent: Intent, form: Form) -> None:
    published = Published(intent, form)
    assert published.uses("somebot") == STATED[intent.name, form.format]
    findings = {finding.rule for finding in published.page(Agent("somebot")).findings}
    assert findings <= {"ait.format"}  # tells which of the two formats of that name is meant
    assert ("ait.format" in findings) == (form.format == "ai.txt of Spawning")


@pytest.mark.parametrize(("intent", "form"), one_in(3, FORMS))
def test_requests_are_refused_where_the_intent_is_about_them(intent: Intent, form: Form) -> None:
    published = Published(intent, form)
    if intent.name == "nobody-but":
        assert published.access("examplebot") is Verdict.ALLOW
        assert published.access("somebot") is Verdict.DENY
        assert published.access("GPTBot") is Verdict.DENY
    elif form.format == "automation-preferences.txt" and intent.name == "no-training-but-search":
        assert published.access("somebot", purposes=["search"]) is Verdict.ALLOW
        assert published.access("somebot", purposes=["train"]) is Verdict.DENY
        assert published.access("somebot") is Verdict.DENY
    else:
        assert published.access("somebot") is Verdict.ALLOW
        assert published.access("Googlebot") is Verdict.ALLOW


@pytest.mark.parametrize("name", ["no-training", "no-training-but-search"])
def test_the_robots_txt_against_training_refuses_the_crawlers_that_it_names_alone(
    name: str,
) -> None:
    intent = BY_NAME[name]
    published = Published(
        intent, next(form for form in intent.forms if form.format == "robots.txt")
    )
    assert {token: published.access(token) for token in TRAINING_CRAWLERS} == dict.fromkeys(
        TRAINING_CRAWLERS, Verdict.DENY
    )
    others = (
        "Googlebot",
        "bingbot",
        "OAI-SearchBot",
        "ChatGPT-User",
        "Claude-SearchBot",
        "Applebot",
    )
    assert {token: published.access(token) for token in others} == dict.fromkeys(
        others, Verdict.ALLOW
    )
    assert [
        crawler
        for token in TRAINING_CRAWLERS
        if (crawler := known(token)) is None or crawler.retired
    ] == []


def test_who_is_to_come_alone_may_use_what_acap_permits_and_others_nothing() -> None:
    intent = BY_NAME["nobody-but"]
    published = Published(intent, intent.forms[1], crawler="onlybot")
    assert published.uses("onlybot")[0] == set()
    assert published.uses("examplebot")[0] == set(USES)


@pytest.mark.parametrize("seconds", [1, 7, 10, 90])
def test_who_is_to_come_slower_is_told_how_slow(seconds: int) -> None:
    intent = BY_NAME["slower"]
    delay, rate, automation = (
        Published(intent, form, seconds=str(seconds)).site for form in intent.forms
    )
    for token in ("somebot", "Googlebot"):
        agent = Agent(token)
        assert (rates := delay.rates(agent))
        assert rates.crawl_delay == seconds
        assert (rates := rate.rates(agent))
        assert rates.request_rates == (RequestRate(1, seconds, None, None),)
        [limits] = automation.limits(agent, URL)
        [window] = limits.windows
        assert window.seconds / window.requests >= seconds
        assert limits.concurrent == 1


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [
        (1, "1/second"),
        (2, "30/minute"),
        (10, "6/minute"),
        (40, "1/minute"),
        (61, "59/hour"),
        (3600, "1/hour"),
        (86400, "1/day"),
    ],
)
def test_a_time_between_requests_is_a_request_limit(seconds: int, limit: str) -> None:
    assert request_limit(seconds) == limit


@pytest.mark.parametrize("seconds", [0, -1, 86401])
def test_a_time_that_cannot_be_said_is_told(seconds: int) -> None:
    with pytest.raises(ValueError, match="write 1 to 86400"):
        request_limit(seconds)


def test_parameters_that_there_are_not_are_told() -> None:
    with pytest.raises(KeyError, match="crawler"):
        BY_NAME["slower"].values(crawler="examplebot")


@pytest.mark.parametrize("intent", INTENTS, ids=lambda intent: str(intent.name))
def test_each_format_says_it_or_is_said_not_to(intent: Intent) -> None:
    said, unsaid = (
        {form.format for form in intent.forms},
        {unsaid.format for unsaid in intent.unsaid},
    )
    assert said | unsaid == set(FORMATS)
    assert said & unsaid == set()
    assert all(form.remark for form in intent.forms)
    assert all(unsaid.reason for unsaid in intent.unsaid)
