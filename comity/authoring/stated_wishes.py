"""Recognise the wishes of a policy file, and write them in other formats.

    for stated_wish in stated_wishes(kind, text):        the wishes of a file
        for draft in drafts(stated_wish, path, texts):    a draft for each other format

Wishes are recognised by decisions of `Site` about sample requests, uses and rates, never by the
text. A form is one way to state a wish in one format. A file states a wish if the file and a
form of the wish lead to equal decisions, on an ordinary path and on all paths that the file
mentions. A draft may add lines to an existing file only if these lines refuse as intended and
change no other decision."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import UTC, datetime
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from comity.authoring.explaining import (
    NOBODY,
    UNSPOKEN,
    spoken_of,
    unnamed_token,
    unspoken_path,
    written_patterns,
)
from comity.authoring.lint import LintKind
from comity.authoring.source import DEFAULT_ORIGIN, SiteSource, SourceFile
from comity.authoring.wishes.copies import NO_SNIPPETS
from comity.authoring.wishes.requests import NOBODY_BUT, SLOWER
from comity.authoring.wishes.training import NO_TRAINING, NO_TRAINING_BUT_SEARCH
from comity.authoring.wishes.wish import ROBOTS, TRAINING_CRAWLERS, Form, Wish
from comity.policies import Agent, Site, Verdict
from comity.policies.agent import PRODUCT_TOKEN
from comity.policies.syntax.urls import origin_of

# The wishes that are recognised. The others need samples of images, purposes or limits.
RECOGNISED = (NO_TRAINING, NO_TRAINING_BUT_SEARCH, NO_SNIPPETS, SLOWER, NOBODY_BUT)
# The maximum number of characters of a file. Larger files state more than a wish.
MAX_CHARACTERS = 64 * 1024
MAX_PATHS = 30  # the maximum number of paths in the files
MAX_NAMES = 30  # the maximum number of crawlers in the files
USES = (
    "train-ai",
    "train-genai",
    "tdm",
    "ai-input",
    "search",
    "index",
    "follow",
    "preserve",
    "present",
    "present-snippet",
)
# Files to which lines can be added, in formats that allow further lines after any content.
# Of the other formats with lines, an automation-preferences.txt has facts that no sample asks for:
# methods, kinds of requests and tools.
_EXTENSIBLE = (ROBOTS,)
_PURPOSES = (None, "search", "research", "train")
_NOW = datetime(2026, 1, 1, tzinfo=UTC)  # so that limits of days are equal
_HEADERS = ((b"Content-Type", b"text/html"),)
_PAGE = b"<!DOCTYPE html><html><head><title>A page</title></head><body><p>Text</p></body></html>"
_SITEMAP = re.compile(
    r"^[ \t]*Sitemap[ \t]*:[ \t]*(https?://[^\s/]+/)", re.IGNORECASE | re.MULTILINE
)

# One decision: ("use", True, ("GPTBot", "https://example.com/", "search")) is a refusal of a use.
# First "request", "use", "limit" or "rate". Then True for a refusal or limit, False for a
# permission. Then the product token, the URL, and the purpose of the request, the use, the use with
# its limits, or the rate.
Fact = tuple[str, bool, tuple[object, ...]]
Texts = Mapping[str, str]  # path on the site -> text of the file


class StatedWish(NamedTuple):
    """An wish that a file states.

    Attributes:
        wish: The wish.
        forms: The forms of the wish that the file contains, at least one.
        values: The names and values of the wish's parameters: (("crawlers", "GPTBot"),). Names of
            crawlers are spelled as in the file.
    """

    wish: Wish
    forms: tuple[Form, ...]
    values: tuple[tuple[str, str], ...]


class DraftedWish(NamedTuple):
    """A draft: the texts that state a wish in one more format.

    Attributes:
        stated_wish: The wish that a file of the site states in some other format.
        form: The form of the wish in the format of the draft.
        added: Path on the site -> text to append to that file. The file is new if the site has no
            file at the path.
    """

    stated_wish: StatedWish
    form: Form
    added: dict[str, str]


class _Samples(NamedTuple):
    """URLs and agents, in every combination, about which files are asked."""

    general: str  # the URL of an ordinary path, which no file mentions
    urls: tuple[str, ...]  # the URLs of paths that the files mention
    agents: tuple[Agent, ...]


_QUICK = _Samples(DEFAULT_ORIGIN + UNSPOKEN[0], (), (Agent(NOBODY),))

PATHS = tuple(
    dict.fromkeys(
        artefact.location
        for wish in RECOGNISED
        for form in wish.forms
        for artefact in form.artefacts
        if artefact.location.startswith("/")
    )
)


def path_of(kind: LintKind) -> str:
    """Return the path of this kind of file in the forms of wishes, e.g. "/robots.txt".

    For a kind without a fixed path, it is the path of a document in the forms with the root element
    of the kind. "" means that no form contains a file of this kind."""
    if kind.path:
        return kind.path if kind.path in PATHS else ""
    root = f"<{kind.name.partition('.')[0]} "
    locations = (
        artefact.location
        for form in _forms()
        for artefact in form.artefacts
        if artefact.template.startswith(root)
    )
    return next((location for location in locations if location.startswith("/")), "")


def _forms() -> Iterator[Form]:
    return (form for wish in RECOGNISED for form in wish.forms)


def stated_wishes(kind: LintKind, text: str) -> list[StatedWish]:
    """Return the wishes that a file states by itself, without the help of other files.

    Each wish is returned at most once. If two wishes are written with the same text, only the
    first one in RECOGNISED is returned. Files longer than MAX_CHARACTERS, and files of a kind that
    no form contains, state no wish."""
    path = path_of(kind)
    if not path or len(text) > MAX_CHARACTERS:
        return []
    wishes: list[StatedWish] = []
    words_seen: set[str] = set()
    for wish in RECOGNISED:
        forms = [form for form in wish.forms if form.artefacts[-1].location == path]
        for values in _possible_values(wish, path, text) if forms else ():
            forms_in_file = _forms_in_file(forms, values, path, text)
            words = tuple(_texts(form, values)[path] for form in forms_in_file)
            if forms_in_file and words_seen.isdisjoint(words):
                wishes.append(StatedWish(wish, forms_in_file, tuple(values.items())))
                words_seen.update(words)
                break
    return wishes


def _forms_in_file(
    forms: Iterable[Form], values: Mapping[str, str], path: str, text: str
) -> tuple[Form, ...]:
    """Return the forms that a file contains, if these forms together explain all its decisions.

    () means that the file contains no form, or decides more than the forms."""
    forms = tuple(forms)
    # The few samples of _QUICK come first, because they already rule out most files.
    for uses_all_samples in (False, True):
        samples = (
            _samples({path: text}, *(_texts(form, values) for form in forms))
            if uses_all_samples
            else _QUICK
        )
        if samples is None:
            return ()
        forms_in_file, expected = [], set[Fact]()
        for form in forms:
            form_texts = _texts(form, values)
            facts = _facts_of_files(tuple({**form_texts, path: text}.items()), samples)
            of_form = _facts_of_form(tuple(form_texts.items()), samples)
            if _restrictions(of_form) <= facts:
                forms_in_file.append(form)
                expected |= of_form
                of_file = facts
        if not forms_in_file or not _is_complete(of_file, _combine(expected), samples.general):
            return ()
    return tuple(forms_in_file) if expected else ()


def _restrictions(facts: Iterable[Fact]) -> set[Fact]:
    return {fact for fact in facts if fact[1]}


def _combine(facts: Set[Fact]) -> set[Fact]:
    """Return the facts without each permission that is refused by another fact."""
    return {fact for fact in facts if fact[1] or (fact[0], True, fact[2]) not in facts}


def _is_complete(facts: Set[Fact], expected: Set[Fact], general: str) -> bool:
    """Return True if the facts that matter equal the expected facts.

    Facts of a kind ("request", "use" or "rate") matter if a fact of this kind is expected. Facts
    about `general`, the ordinary path, matter even if their kind is not expected: all facts about
    requests, and all facts about uses unless only rates are expected. So a file that also forbids
    every request does not state "no training"."""
    kinds = {fact[0] for fact in expected}
    general_kinds = {"request", "use"} if kinds - {"rate"} else {"request"}

    def matters(fact: Fact) -> bool:
        return fact[0] in kinds or (fact[0] in general_kinds and general in fact[2])

    return set(filter(matters, facts)) == set(filter(matters, expected))


def drafts(stated_wish: StatedWish, path: str, texts: Texts) -> list[DraftedWish]:
    """Return drafts of the wish in other formats, one for each format in which it can be stated.

    `path`: the path on the site of the file that states the wish.
    `texts`: the files of the site, with the one at `path` among them."""
    values = dict(stated_wish.values)
    if "origin" in values:
        sitemap = _SITEMAP.search(texts.get(ROBOTS, ""))
        values["origin"] = origin_of(sitemap[1]) if sitemap else ""
    formats_of_file = {
        form.format
        for form in stated_wish.forms
        if _has_rules(form, stated_wish, path, texts[path])
    }
    by_format: dict[str, DraftedWish] = {}
    for form in stated_wish.wish.forms:
        locations = [artefact.location for artefact in form.artefacts]
        if (
            form.format in formats_of_file
            or form.format in by_format
            or not all(location.startswith("/") for location in locations)
        ):
            continue
        # A reference to a file needs the origin of the site, which only the publisher knows.
        if not values.get("origin") and any(
            "$origin" in artefact.template for artefact in form.artefacts
        ):
            continue
        form_texts = _texts(form, values)
        if (added := texts_to_add(form_texts, texts)) is not None:
            by_format[form.format] = DraftedWish(stated_wish, form, added)
    return list(by_format.values())


def _has_rules(form: Form, stated_wish: StatedWish, path: str, text: str) -> bool:
    """Return True if a file has every rule by which a form refuses.

    A file that refuses the same uses by other rules does not have the rules of the form."""
    form_texts = _texts(form, dict(stated_wish.values))
    return _rules(form_texts) <= _rules({**form_texts, path: text})


def has_form(path: str, form_text: str, text: str) -> bool:
    """Return True if the text of a form changes nothing in the file at a path.

    The file then has each rule of the form, for all of its crawlers and paths."""
    if len(text) > MAX_CHARACTERS or not _rules({path: form_text}) <= _rules({path: text}):
        return False
    if path not in _EXTENSIBLE and form_text.strip() not in text:
        return False
    combined = text + _gap(text) + form_text if path in _EXTENSIBLE else text
    samples = _samples({path: text}, {path: form_text})
    if samples is None:
        return False
    before, alone, after = (
        _facts_of_files(((path, one),), samples) for one in (text, form_text, combined)
    )
    return before == after and alone <= before


def texts_to_add(
    form_texts: Texts, texts: Texts, *, keeps_permissions: bool = False
) -> dict[str, str] | None:
    """Return the text to append to each file, by path, so that the form holds too.

    None means that nothing may be appended: a file is too long, or its format allows no further
    lines; the files have too many samples; or the result would decide differently from the existing
    files and the form together, with a refusal by either kept.
    `keeps_permissions`: return None also if the existing files refuse what the form permits."""
    existing = {path: texts[path] for path in form_texts if path in texts}
    if not any(text.strip() for text in existing.values()):
        return dict(form_texts)
    if any(
        text.strip() and (path not in _EXTENSIBLE or len(text) > MAX_CHARACTERS)
        for path, text in existing.items()
    ):
        return None
    added = {path: _gap(existing.get(path, "")) + text for path, text in form_texts.items()}
    combined = {path: existing.get(path, "") + text for path, text in added.items()}
    samples = _samples(existing, form_texts)
    if samples is None:
        return None
    before, alone, after = (
        _facts_of_files(tuple(files.items()), samples) for files in (existing, form_texts, combined)
    )
    if keeps_permissions and not alone <= after:
        return None
    return added if after == _combine(before | alone) else None


def _gap(text: str) -> str:
    """Return the line ends that put a blank line between a file and the text appended to it.

    "" if the file is blank: then no blank line is needed."""
    return "" if not text.strip() else "\n" if text.endswith(("\n", "\r")) else "\n\n"


def _texts(form: Form, values: Mapping[str, str]) -> dict[str, str]:
    return {artefact.location: artefact.text(values) for artefact in form.artefacts}


def _possible_values(wish: Wish, path: str, text: str) -> Iterator[dict[str, str]]:
    """Yield the values that the parameters of a wish may have in a file."""
    names = {parameter.name for parameter in wish.parameters}
    site = _site({path: text})
    if "crawlers" in names:
        for name in sorted(site.crawler_names)[:MAX_NAMES]:
            spelled = re.search(re.escape(name), text, re.IGNORECASE)
            if spelled and PRODUCT_TOKEN.fullmatch(name):
                yield wish.values(crawlers=spelled[0])
    elif "seconds" in names:
        for seconds in dict.fromkeys(_seconds(site)):
            if seconds == int(seconds) and 1 <= seconds <= 24 * 3600:
                yield wish.values(seconds=str(int(seconds)))
    else:
        yield wish.values()


def _seconds(site: Site) -> Iterator[float]:
    """Yield the seconds between requests that a site asks for."""
    agent = Agent(unnamed_token(site))
    if rates := site.rates(agent):
        if rates.crawl_delay:
            yield rates.crawl_delay
        yield from (
            ceil(rate.seconds / rate.requests) for rate in rates.request_rates if rate.requests
        )
    for limits in site.limits(agent, DEFAULT_ORIGIN + "/"):
        yield from (
            ceil(window.seconds / window.requests) for window in limits.windows if window.requests
        )


def _samples(*all_texts: Texts) -> _Samples | None:
    """Return the samples for several sets of files, with all their paths and crawlers.

    None means that the sets contain more than MAX_NAMES crawlers or MAX_PATHS paths, or a name that
    is no product token."""
    sites = [_site(texts) for texts in all_texts]
    files = (SourceFile(url, url, fetched) for site in sites for url, fetched in site.files.items())
    source = SiteSource(DEFAULT_ORIGIN, sites[0], tuple(files), ())
    names = {name for site in sites for name in site.crawler_names} - {"*", ""}
    # Another pattern of the files may match "any". Patterns such as `*.png` may have no slash.
    any_text = unspoken_path(source).removeprefix("/")
    endings = (
        pattern.split("$")[0].replace("*", any_text)
        for pattern in written_patterns(source)
        if pattern.startswith("*") and "/" not in pattern
    )
    paths = list(dict.fromkeys((*spoken_of(source, any_text), *(f"/{path}" for path in endings))))
    other_names = [name for name in sorted(names) if name not in map(str.lower, TRAINING_CRAWLERS)]
    if (
        len(other_names) > MAX_NAMES
        or len(paths) > MAX_PATHS
        or not all(map(PRODUCT_TOKEN.fullmatch, names))
    ):
        return None
    tokens = dict.fromkeys((unnamed_token(*sites), "Googlebot", *TRAINING_CRAWLERS, *other_names))
    urls = tuple(DEFAULT_ORIGIN + path for path in paths)
    return _Samples(DEFAULT_ORIGIN + unspoken_path(source), urls, tuple(map(Agent, tokens)))


def _site(texts: Texts) -> Site:
    return Site.from_files(
        DEFAULT_ORIGIN, {path: text.encode("utf-8", "replace") for path, text in texts.items()}
    )


def _facts(site: Site, samples: _Samples) -> set[Fact]:
    """Return a site's decisions about all samples.

    These are the refused requests, the uses that the site states (permitted or refused) with their
    limits, and the rates. Permitted requests are no facts."""
    facts: set[Fact] = set()
    for agent in samples.agents:
        for url in (samples.general, *samples.urls):
            for purpose in _PURPOSES:
                verdict = site.access(agent, url, purposes=[purpose] if purpose else None).verdict
                if verdict is not Verdict.ALLOW:
                    facts.add(("request", True, (agent.token, url, purpose)))
            uses = site.page(agent, url, headers=_HEADERS, body=_PAGE, now=_NOW).uses
            for use in USES:
                if terms := uses[use].restrictions():
                    facts.add(("limit", True, (agent.token, url, use, tuple(terms.items()))))
                if uses[use].stated:
                    facts.add(
                        ("use", uses[use].verdict is not Verdict.ALLOW, (agent.token, url, use))
                    )
            for limits in site.limits(agent, url):
                facts |= {("rate", True, (agent.token, url, window)) for window in limits.windows}
                if limits.concurrent is not None:
                    facts.add(("rate", True, (agent.token, url, limits.concurrent)))
        if rates := site.rates(agent):
            rate_values = (rates.crawl_delay, *rates.request_rates, rates.visit_time)
            facts |= {
                ("rate", True, (agent.token, "", rate)) for rate in rate_values if rate is not None
            }
    return facts


def _facts_of_texts(texts: tuple[tuple[str, str], ...], samples: _Samples) -> frozenset[Fact]:
    return frozenset(_facts(_site(dict(texts)), samples))


_facts_of_form = lru_cache(maxsize=256)(_facts_of_texts)
# The cache is small, because files may be large. Successive calls ask about the same few files.
_facts_of_files = lru_cache(maxsize=8)(_facts_of_texts)


def _rules(texts: Texts) -> set[str]:
    """Return the rules by which files refuse access or a use on the ordinary path.

    They are asked on behalf of an unknown crawler, and of the first training crawler."""
    site = _site(texts)
    rules: set[str] = set()
    for token in (NOBODY, TRAINING_CRAWLERS[0]):
        agent = Agent(token)
        uses = site.page(agent, _QUICK.general, headers=_HEADERS, body=_PAGE).uses
        access = site.access(agent, _QUICK.general)
        decisions = [
            (access.verdict, access.reasons),
            *((uses[use].verdict, uses[use].reasons) for use in USES),
        ]
        rules |= {
            reason.rule
            for verdict, reasons in decisions
            if verdict is not Verdict.ALLOW
            for reason in reasons
        }
    return rules
