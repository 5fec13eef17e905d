"""Help for authors of ACAP records in a robots.txt."""

from __future__ import annotations

from comity.policies.formats.acap.fixes import FIXES
from comity.policies.formats.acap.usages import OTHER, QUALIFIED, USAGES
from comity.policies.formats.authoring import Authoring, Directive

_CRAWLER = "ACAP-crawler"

USAGE_SUMMARIES = {
    "crawl": "fetch it",
    "follow": "follow its links",
    "index": "make index entries for it",
    "preserve": "keep a copy",
    "present": "show it in any way",
    "present-original": "show the original, fetched when it is shown",
    "present-currentcopy": "show the copy that was fetched last",
    "present-oldcopy": "show a copy that was fetched before",
    "present-snippet": "show a snippet of the last copy",
    "present-thumbnail": "show a thumbnail of the last copy",
    "present-oldsnippet": "show a snippet of an earlier copy",
    "present-oldthumbnail": "show a thumbnail of an earlier copy",
    "present-link": "show a link to it",
    OTHER: "do anything that no other field mentions, including fetching",
}
_SECTIONS = {
    "crawl": "2.5.1",
    "follow": "2.5.2",
    "index": "2.5.3",
    "preserve": "2.5.4",
    "present": "2.5.5",
    OTHER: "2.5.6",
}

# Qualifier -> its values, each with its meaning.
QUALIFIER_VALUES = {
    "time-limit": {
        "until-recrawled": "until it is fetched again",
        "until-2030-12-31": "to the end of that day, UTC",
        "30-days": "for so many days from the first use",
    },
    "max-length": {"30-words": "at most so many words", "250-chars": "at most so many characters"},
    "prohibited-modification": {
        "any": "it may not be changed in any way",
        "format": "it may not be converted to another format",
        "style": "its style may not be changed",
        "translation": "it may not be translated",
        "annotation": "nothing may be added to it",
    },
    "prohibited-context": {"within-user-frame": "not within a frame of another site"},
    "required-context": {"within-original-frame": "only within the frame of its own site"},
    "must-use-resource": {"/summary.txt": "that resource is used in its place, by arrangement"},
    "must-include-resource": {
        "the-acap:credit:/credit.html": "that credit is shown with it, by arrangement",
        "the-acap:link:/": "that link is shown with it, by arrangement",
        "/terms.html": "that resource is shown with it, by arrangement",
    },
}


def _fields() -> tuple[Directive, ...]:
    """Return the directives that permit and prohibit each usage, such as ACAP-allow-index."""
    fields = []
    for usage in USAGES:
        spec, summary = (
            f"ACAP 1.0 section-{_SECTIONS[usage.partition('-')[0]]}",
            USAGE_SUMMARIES[usage],
        )
        qualifiers = (
            f" {usage}-qualifier" if any(usage in usages for usages in QUALIFIED.values()) else ""
        )
        fields += [
            Directive(
                f"ACAP-allow-{usage}",
                spec,
                f"Permits to {summary}",
                f"path{qualifiers}",
                (_CRAWLER,),
            ),
            Directive(
                f"ACAP-disallow-{usage}", spec, f"Prohibits to {summary}", "path", (_CRAWLER,)
            ),
        ]
    return tuple(fields)


DIRECTIVES = (
    Directive(
        "ACAP-ignore-conventional-records",
        "ACAP 1.0 section-2.9.1",
        "The User-agent records of this file have no effect on crawlers that read ACAP",
    ),
    Directive(
        "ACAP-resource-set", "ACAP 1.0 section-2.7.3", "Gives several patterns a name", "name path"
    ),
    Directive(
        "ACAP-qualified-usage",
        "ACAP 1.0 section-2.7.1",
        "Gives a usage with its qualifiers a name",
        "name usage qualifier",
    ),
    Directive(
        "ACAP-composite-usage",
        "ACAP 1.0 section-2.7.2",
        "Gives several usages a name",
        "name usage",
    ),
    Directive(
        _CRAWLER,
        "ACAP 1.0 section-2.3.1",
        "Begins a record: the crawler that the fields below it address",
        "agent",
    ),
    Directive(
        "ACAP-permissions-reference",
        "ACAP 1.0 section-2.3.2",
        "Names another file with fields for the same crawlers, alone in its record",
        "url",
        (_CRAWLER,),
    ),
    Directive(
        "ACAP-usage-purpose",
        "ACAP 1.0 section-2.3.3",
        "Begins a sub-record: its fields apply to crawls with this purpose",
        "purpose",
        (_CRAWLER,),
    ),
    *_fields(),
    Directive(
        "ACAP-request-take-down",
        "ACAP 1.0 section-2.6",
        "Asks to remove everything that was taken from there",
        "path",
        (_CRAWLER,),
    ),
    Directive(
        "ACAP-request-re-crawl",
        "ACAP 1.0 section-2.6",
        "Asks to fetch it again",
        "path",
        (_CRAWLER,),
    ),
)


def _qualifiers(usages: tuple[str, ...]) -> dict[str, str]:
    """Return the qualifiers that a permission of any of the usages can have, with their meaning.

    A key is written as in a file: `name=value`.
    """
    return {
        f"{name}={value}": summary
        for name, values in QUALIFIER_VALUES.items()
        if not QUALIFIED[name].isdisjoint(usages)
        for value, summary in values.items()
    }


VALUES = {
    "agent": {"*": "any crawler, unless a record for its name states otherwise"},
    "path": {
        "/": "the whole site",
        "the-acap:resource-set:NAME": "the patterns of a set that the file defines",
    },
    "usage": USAGE_SUMMARIES,
    "qualifier": _qualifiers(USAGES),
    **{
        f"{usage}-qualifier": qualifiers
        for usage in USAGES
        if (qualifiers := _qualifiers((usage,)))
    },
}

AUTHORING = Authoring(directives=DIRECTIVES, values=VALUES, fixes=FIXES)
