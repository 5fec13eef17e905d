"""Crawlers that obey the formats, as their operators document it."""

from __future__ import annotations

from collections.abc import Mapping

from comity.authoring.wishes.wish import (
    ACAP,
    AI_TXT,
    AIPREF,
    AUTOMATION,
    META,
    RFC,
    RSL,
    SIGNALS,
    SPAWNING,
    TDMREP,
    TRAINING_RULES,
    TRUST,
    USAGE,
    Artefact,
    Form,
    Reader,
)
from comity.policies.vocabulary.known_crawlers import KnownCrawler, known


def google(directive: str) -> Reader:
    """Return that Google obeys a directive of robots meta elements."""
    return Reader(
        f"Google documents `{directive}`",
        "https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag",
    )


IMAGE_FIELD_READERS = (
    google("noimageindex"),
    Reader(
        "img2dataset skips images with this field",
        "https://github.com/rom1504/img2dataset#opt-out-directives",
    ),
)
CRAWL_DELAY_READERS = (
    Reader(
        "Bing fetches one page in this time, up to 30 seconds",
        "https://blogs.bing.com/webmaster/2012/05/03/to-crawl-or-not-to-crawl-that-is-bingbots-question",
    ),
    Reader("Common Crawl obeys the line", "http://www.commoncrawl.org/bot.html"),
    Reader(
        "The crawlers of Anthropic support the line",
        "https://support.anthropic.com/en/articles/"
        "8896518-does-anthropic-crawl-data-from-the-web-and-how-can-site-owners-block-the-crawler",
    ),
    Reader(
        "Google does not read the line",
        "https://developers.google.com/search/blog/2019/07/a-note-on-unsupported-rules-in-robotstxt",
    ),
)
REQUEST_RATE_READERS = (
    Reader(
        "Programs with Python's `urllib.robotparser` can read the line",
        "https://docs.python.org/3/library/urllib.robotparser.html",
    ),
)

_UNKNOWN = Reader("comity obeys the format. No operator of another crawler is known to do so")
READERS: Mapping[str, tuple[Reader, ...]] = {
    RFC: (
        Reader(
            "RFC 9309 requests all crawlers to obey the file",
            "https://www.rfc-editor.org/rfc/rfc9309",
        ),
    ),
    SIGNALS: (
        Reader(
            "The crawl endpoint of Cloudflare obeys the key `use` of Content Signals",
            "https://developers.cloudflare.com/changelog/post/2026-08-31-crawl-content-use/",
        ),
    ),
    SPAWNING: (
        Reader(
            "Spawning passes the file on to its partners, Hugging Face and Stability AI among them",
            "https://spawning.substack.com/p/aitxt-a-new-way-for-websites-to-set",
        ),
    ),
    META: (
        Reader(
            "img2dataset obeys `noai` and `noimageai` in the field beside an image",
            "https://github.com/rom1504/img2dataset#opt-out-directives",
        ),
    ),
    **dict.fromkeys(
        (ACAP, AUTOMATION, USAGE, AIPREF, TRAINING_RULES, TRUST, AI_TXT, TDMREP, RSL), (_UNKNOWN,)
    ),
}


def readers_of(form: Form) -> tuple[Reader, ...]:
    """Return the statements about the crawlers that obey a form."""
    return form.readers or READERS[form.format]


def named_crawlers(artefact: Artefact) -> list[KnownCrawler]:
    """Return the known crawlers that a robots.txt names, with their purposes and sources."""
    lines = artefact.template.splitlines()
    tokens = (line.partition(": ")[2] for line in lines if line.startswith("User-agent: "))
    return [crawler for token in tokens if (crawler := known(token))]
