"""What a policy file says, of all that publishers want, and the same in other formats.

    for said in intents_said(kind, body):           by decisions of Site about samples: requests, uses and rates
        for draft in drafts(said, place, texts):    files of other formats that say it, one for each format

Nothing is guessed: a file says an intent where what is decided of everybody by it is what is decided by the form that the intent
has in a format, on a path of which nobody speaks and on all of which the file does. A draft that would add lines to a file is
one only where these refuse what they are to refuse, and change nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from comity.authoring.explaining import NOBODY, UNSPOKEN, spoken_of, unnamed, unspoken_path
from comity.authoring.intents import INTENTS, ROBOTS, TRAINING_CRAWLERS, Form, Intent
from comity.authoring.lint import Kind
from comity.authoring.sites import DEFAULT_ORIGIN, Source, SourceFile
from comity.policies import Agent, Site, Verdict
from comity.policies.agent import PRODUCT_TOKEN
from comity.policies.syntax.urls import origin_of

MAX_OCTETS = 64 * 1024  # of one file: what a larger one says is more than an intent
MAX_PATHS = 30  # of which the files speak
MAX_NAMES = 30  # of crawlers, likewise
USES = ("train-ai", "train-genai", "tdm", "ai-input", "search", "index", "follow", "preserve", "present", "present-snippet")
_JOINED = (ROBOTS, "/automation-preferences.txt")  # to which lines can be added, whatever stands in them
_PURPOSES = (None, "search", "train")
_HEADERS = ((b"Content-Type", b"text/html"),)
_PAGE = b"<!DOCTYPE html><html><head><title>A page</title></head><body><p>Text</p></body></html>"
_SITEMAP = re.compile(r"^[ \t]*Sitemap[ \t]*:[ \t]*(https?://[^\s/]+/)", re.IGNORECASE | re.MULTILINE)

Fact = tuple[str, bool, tuple[object, ...]]  # "request", "use" or "rate"; whether it limits; of whom, where, what
Texts = Mapping[str, str]  # by path on the site


class Said(NamedTuple):
    """An intent that a file says."""

    intent: Intent
    forms: tuple[Form, ...]  # of it that the file has, one at least
    values: tuple[tuple[str, str], ...]  # of the parameters of the intent, as the file has them


class Draft(NamedTuple):
    """Files that say an intent in one format."""

    said: Said
    form: Form
    added: dict[str, str]  # what each file is to have, by its path on the site; at its end, where it exists


class _Samples(NamedTuple):
    """Requests about which is decided."""

    general: str  # URL of which no file speaks
    urls: tuple[str, ...]  # the others
    agents: tuple[Agent, ...]


_QUICK = _Samples(DEFAULT_ORIGIN + UNSPOKEN[0], (), (Agent(NOBODY),))

PLACES = tuple(
    dict.fromkeys(
        artefact.place
        for intent in INTENTS
        for form in intent.forms
        for artefact in form.artefacts
        if artefact.place.startswith("/")
    )
)


def place_of(kind: Kind) -> str:
    """Return the path on a site at which the forms of intents have a file of a kind; "" where there is no such form."""
    if kind.path:
        return kind.path if kind.path in PLACES else ""
    root = f"<{kind.name.partition('.')[0]} "
    places = (artefact.place for form in _forms() for artefact in form.artefacts if artefact.template.startswith(root))
    return next((place for place in places if place.startswith("/")), "")


def _forms() -> Iterator[Form]:
    return (form for intent in INTENTS for form in intent.forms)


def intents_said(kind: Kind, text: str) -> list[Said]:
    """Return the intents that a file says by itself, each once. What two of them say in the same words is said of the first."""
    place = place_of(kind)
    if not place or len(text) > MAX_OCTETS:
        return []
    found: list[Said] = []
    words_found: set[str] = set()
    for intent in INTENTS:
        forms = [form for form in intent.forms if form.artefacts[-1].place == place]
        for values in _possible_values(intent, place, text) if forms else ():
            said_by = _said_by(forms, values, place, text)
            words = tuple(_written(form, values)[place] for form in said_by)
            if said_by and words_found.isdisjoint(words):
                found.append(Said(intent, said_by, tuple(values.items())))
                words_found.update(words)
                break
    return found


def _said_by(forms: Iterable[Form], values: Mapping[str, str], place: str, text: str) -> tuple[Form, ...]:
    """Return the forms that a file has, where all that is decided by it is decided by these. (): it says something else."""
    forms = tuple(forms)
    samples = None
    # Of everybody most files say something else already: that is asked first.
    for is_all in (False, True):
        if is_all and (samples := _samples({place: text}, *(_written(form, values) for form in forms))) is None:
            return ()
        asked = samples or _QUICK
        said_by, expected = [], set[Fact]()
        for form in forms:
            written = _written(form, values)
            facts = _facts(_site({**written, place: text}), asked)
            of_form = _facts_of(tuple(written.items()), asked)
            if _binding(of_form) <= facts:
                said_by.append(form)
                expected |= of_form
                of_file = facts
        if not said_by or not _is_all(of_file, _together(expected), asked.general):
            return ()
    return tuple(said_by) if expected else ()


def _binding(facts: Iterable[Fact]) -> set[Fact]:
    return {fact for fact in facts if fact[1]}


def _together(facts: set[Fact]) -> set[Fact]:
    """Return what holds of what several say: who refuses wins."""
    return {fact for fact in facts if fact[1] or (fact[0], True, fact[2]) not in facts}


def _is_all(facts: set[Fact], expected: set[Fact], general: str) -> bool:
    """Return whether what is decided is what is expected, as far as that is spoken of; on a path of which nobody speaks, whether
    nothing else is refused either."""
    kinds = {fact[0] for fact in expected}
    also = {"request", "use"} if kinds - {"rate"} else {"request"}

    def meant(fact: Fact) -> bool:
        return fact[0] in kinds or (fact[0] in also and general in fact[2])

    return set(filter(meant, facts)) == set(filter(meant, expected))


def drafts(said: Said, place: str, texts: Texts) -> list[Draft]:
    """Return what says it in the other formats, as far as that can be told. `texts`: of the files that the site has, that at
    `place` among them, which says it."""
    values = dict(said.values)
    if "origin" in values:
        told = _SITEMAP.search(texts.get(ROBOTS, ""))
        values["origin"] = origin_of(told[1]) if told else ""
    has = {form.format for form in said.forms if _is_by(form, said, place, texts[place])}
    found: dict[str, Draft] = {}
    for form in said.intent.forms:
        places = [artefact.place for artefact in form.artefacts]
        if form.format in has or form.format in found or not all(at.startswith("/") for at in places):
            continue
        # A reference to a file names the site, and only the publisher knows which it is.
        if not values.get("origin") and any("$origin" in artefact.template for artefact in form.artefacts):
            continue
        written = _written(form, values)
        if (added := _added(written, texts)) is not None:
            found[form.format] = Draft(said, form, added)
    return list(found.values())


def _is_by(form: Form, said: Said, place: str, text: str) -> bool:
    """Return whether a file has the rules of a form, and not only their refusals."""
    written = _written(form, dict(said.values))
    return _rules(written) <= _rules({**written, place: text})


def _added(written: Texts, texts: Texts) -> dict[str, str] | None:
    """Return what is to be added to each file; None where that says something else than what is written and what is there."""
    existing = {place: texts[place] for place in written if place in texts}
    if not any(text.strip() for text in existing.values()):
        return dict(written)
    if any(text.strip() and (at not in _JOINED or len(text) > MAX_OCTETS) for at, text in existing.items()):
        return None
    added = {place: _gap(existing.get(place, "")) + text for place, text in written.items()}
    together = {place: existing.get(place, "") + text for place, text in added.items()}
    samples = _samples(existing, written)
    if samples is None:
        return None
    before, alone, after = (_facts(_site(of), samples) for of in (existing, written, together))
    return added if after == _together(before | alone) else None


def _gap(text: str) -> str:
    """Return what parts a text from what is added: an end of its last line, and a blank line."""
    return "" if not text.strip() else "\n" if text.endswith(("\n", "\r")) else "\n\n"


def _written(form: Form, values: Mapping[str, str]) -> dict[str, str]:
    return {artefact.place: artefact.written(values) for artefact in form.artefacts}


def _possible_values(intent: Intent, place: str, text: str) -> Iterator[dict[str, str]]:
    """Yield the values that the parameters of an intent can have, where a file says it."""
    names = {parameter.name for parameter in intent.parameters}
    site = _site({place: text})
    if "crawler" in names:
        for name in sorted(site.crawler_names)[:MAX_NAMES]:
            spelled = re.search(re.escape(name), text, re.IGNORECASE)
            if spelled and PRODUCT_TOKEN.fullmatch(name):
                yield intent.values(crawler=spelled[0])
    elif "seconds" in names:
        for seconds in dict.fromkeys(_seconds(site)):
            if seconds == int(seconds) and 1 <= seconds <= 24 * 3600:
                yield intent.values(seconds=str(int(seconds)))
    else:
        yield intent.values()


def _seconds(site: Site) -> Iterator[float]:
    """Yield the times between requests that are asked for."""
    agent = Agent(unnamed(site))
    if rates := site.rates(agent):
        if rates.crawl_delay:
            yield rates.crawl_delay
        yield from (ceil(rate.seconds / rate.requests) for rate in rates.request_rates if rate.requests)
    for limits in site.limits(agent, DEFAULT_ORIGIN + "/"):
        yield from (ceil(window.seconds / window.requests) for window in limits.windows if window.requests)


def _samples(*all_texts: Texts) -> _Samples | None:
    """Return the samples for files; None where these speak of too much."""
    sites = [_site(of) for of in all_texts]
    files = (SourceFile(url, url, fetched) for site in sites for url, fetched in site.files.items())
    source = Source(DEFAULT_ORIGIN, sites[0], tuple(files), ())
    names = {name for site in sites for name in site.crawler_names} - {"*", ""}
    paths = spoken_of(source)
    named = [name for name in sorted(names) if name not in map(str.lower, TRAINING_CRAWLERS)]
    if len(named) > MAX_NAMES or len(paths) > MAX_PATHS or not all(map(PRODUCT_TOKEN.fullmatch, names)):
        return None
    tokens = dict.fromkeys((unnamed(*sites), "Googlebot", *TRAINING_CRAWLERS, *named))
    urls = tuple(DEFAULT_ORIGIN + path for path in paths)
    return _Samples(DEFAULT_ORIGIN + unspoken_path(source), urls, tuple(map(Agent, tokens)))


def _site(texts: Texts) -> Site:
    return Site.from_files(DEFAULT_ORIGIN, {place: text.encode("utf-8", "replace") for place, text in texts.items()})


def _facts(site: Site, samples: _Samples) -> set[Fact]:
    """Return what is decided: refused requests, uses of which somebody speaks, and rates."""
    facts: set[Fact] = set()
    for agent in samples.agents:
        for url in (samples.general, *samples.urls):
            for purpose in _PURPOSES:
                verdict = site.access(agent, url, purposes=[purpose] if purpose else None).verdict
                if verdict is not Verdict.ALLOW:
                    facts.add(("request", True, (agent.token, url, purpose)))
            uses = site.page(agent, url, headers=_HEADERS, body=_PAGE).uses
            for use in USES:
                if uses[use].stated:
                    facts.add(("use", uses[use].verdict is not Verdict.ALLOW, (agent.token, url, use)))
            for limits in site.limits(agent, url):
                facts |= {("rate", True, (agent.token, url, window)) for window in limits.windows}
                if limits.concurrent is not None:
                    facts.add(("rate", True, (agent.token, url, limits.concurrent)))
        if rates := site.rates(agent):
            asked = (rates.crawl_delay, *rates.request_rates, rates.visit_time)
            facts |= {("rate", True, (agent.token, "", rate)) for rate in asked if rate is not None}
    return facts


@lru_cache(maxsize=256)
def _facts_of(texts: tuple[tuple[str, str], ...], samples: _Samples) -> frozenset[Fact]:
    return frozenset(_facts(_site(dict(texts)), samples))


def _rules(texts: Texts) -> set[str]:
    """Return the rules by which lines refuse something, for everybody or one of those that train."""
    site = _site(texts)
    found: set[str] = set()
    for token in (NOBODY, TRAINING_CRAWLERS[0]):
        agent = Agent(token)
        uses = site.page(agent, _QUICK.general, headers=_HEADERS, body=_PAGE).uses
        access = site.access(agent, _QUICK.general)
        told = [(access.verdict, access.reasons), *((uses[use].verdict, uses[use].reasons) for use in USES)]
        found |= {reason.rule for verdict, reasons in told if verdict is not Verdict.ALLOW for reason in reasons}
    return found
