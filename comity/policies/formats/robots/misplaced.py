"""Requests that publishers write into robots.txt although crawlers do not read them there.

advice(name)     what to write instead of a record of this name; "" if nothing is known
"""

from __future__ import annotations

import re

# Records that comity does not use, although other crawlers read them.
READ_ELSEWHERE = frozenset(("host",))  # Yandex
_JOINTS = re.compile("[ _.-]+")

_IN_PAGES = (
    'Send the field `X-Robots-Tag: {0}` with the pages, or write `<meta name="robots" '
    'content="{0}">` into them.'
)
_BELOW = "below a User-agent line."
_NO_TRAINING = f"Write `Content-Signal: ai-train=no` or `Content-Usage: train-ai=n` {_BELOW}"
_RECORD = "Write `{}` instead."
_TDM = "Write it into /.well-known/tdmrep.json, or send it as a field with the pages."

# Name in lower case without spaces, dots, hyphens and underscores -> what to write instead.
ADVICE = {
    **{
        word: _IN_PAGES.format(word)
        for word in (
            "noindex",
            "nofollow",
            "noarchive",
            "nosnippet",
            "noimageindex",
            "nocache",
            "notranslate",
        )
    },
    **dict.fromkeys(
        (
            *("aitrain", "aitraining", "allowaitraining", "trainai"),
            *(
                "blockai",
                "disallowai",
                "disallowaitraining",
                "disallowtraining",
                "noai",
                "noaitraining",
                "noimageai",
            ),
            *("noml", "notrain", "notraining"),
        ),
        _NO_TRAINING,
    ),
    "datatrainingallowed": "Write it into /trust.txt.",
    "aiinput": f"Write `Content-Signal: ai-input=no` {_BELOW}",
    **dict.fromkeys(
        ("block", "deny", "disallowed", "exclude", "forbid", "reject"), _RECORD.format("Disallow")
    ),
    **dict.fromkeys(("accept", "allowed", "include", "permit"), _RECORD.format("Allow")),
    **dict.fromkeys(
        ("agent", "bot", "botname", "crawler", "robot", "spider", "useragents"),
        _RECORD.format("User-agent"),
    ),
    **dict.fromkeys(("crawlrate", "delay", "ratelimit"), _RECORD.format("Crawl-delay")),
    **dict.fromkeys(("sitemapindex", "sitemapurl"), _RECORD.format("Sitemap")),
    **dict.fromkeys(("tdmreservation", "tdmpolicy"), _TDM),
    "xrobotstag": "It is a field of responses: send it with the pages.",
}


def advice(name: str) -> str:
    """Return what to write instead of a record, or "" if nothing is known.

    `name` may be in any case.
    """
    return ADVICE.get(strip_joints(name), "")


def strip_joints(name: str) -> str:
    """Return a name in lower case without spaces, dots, hyphens and underscores."""
    return _JOINTS.sub("", name.lower())
