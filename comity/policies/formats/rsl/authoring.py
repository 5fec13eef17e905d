"""Help for authors of RSL documents, and of references to them."""

from __future__ import annotations

from comity.policies.formats.authoring import Authoring, Directive, FileKind
from comity.policies.formats.rsl.checks import check_document, check_rsl, check_site
from comity.policies.formats.rsl.grammar import GENERAL, LEGAL_TYPES, USERS
from comity.policies.syntax.xml_tree import root_name

_ELEMENTS = (
    (
        "rsl",
        "section-3.2",
        "The root of a document, in the namespace https://rslstandard.org/rsl",
        "",
        (),
    ),
    ("content", "section-3.3", "Which resources its licenses are about", "", ("rsl",)),
    ("license", "section-3.4", "One set of terms", "", ("content",)),
    (
        "permits",
        "section-3.4",
        "Which usages the license permits, or to which users or places it is given",
        "",
        ("license",),
    ),
    (
        "prohibits",
        "section-3.4",
        "Which usages are prohibited, or to which users or places the license is not given",
        "",
        ("license",),
    ),
    ("payment", "section-3.4", "What is asked in return", "", ("license",)),
    ("reporting", "section-3.4", "How the use has to be reported", "", ("license",)),
    ("legal", "section-3.13", "What the publisher warrants or disclaims", "", ("license",)),
    ("alternate", "section-3.14", "Another URL of the same content", "url", ("content",)),
    (
        "schema",
        "section-3.3",
        "A description of the content in the words of schema.org",
        "url",
        ("content",),
    ),
    ("copyright", "section-3.3", "Who has the rights", "", ("content",)),
    ("terms", "section-3.3", "Where terms stand for people to read", "url", ("content",)),
)
_ATTRIBUTES = (
    (
        "max-age",
        "section-3.2.1",
        "For how many days the document may be kept; 30 without it",
        "number",
        ("rsl",),
    ),
    (
        "url",
        "section-3.3",
        "Which resources are meant: a URL, or a pattern of paths",
        "path",
        ("content",),
    ),
    ("server", "section-3.3", "A server that has to be asked for the license", "url", ("content",)),
    ("encrypted", "section-3.3", "Whether the content is encrypted", "boolean", ("content",)),
    ("lastmod", "section-3.3", "When the content was changed last", "date", ("content",)),
    ("type", "section-3.4", "What the list is of", "list-type", ("permits", "prohibits")),
    ("type", "section-3.4", "What is asked in return", "payment", ("payment",)),
    ("type", "section-3.13", "What it is", "legal", ("legal",)),
)
_USAGES = {
    "all": "any use",
    "ai-all": "any use by AI",
    "ai-train": "training of models",
    "ai-input": "input of a model, as for an answer",
    "ai-index": "an index that AI searches",
    "search": "search that leads to the content",
}
_WORDS_OF_USERS = {
    "commercial": "companies",
    "non-commercial": "those who earn nothing by it",
    "education": "schools and universities",
    "government": "authorities",
    "personal": "people for themselves",
}
_WORDS_OF_LEGAL = {
    "warranty": "what the publisher warrants",
    "disclaimer": "what the publisher does not warrant",
    "attestation": "what the publisher attests",
    "contact": "who can be asked",
    "proof": "a proof of what is attested",
}

AUTHORING = Authoring(
    directives=(
        *(
            Directive(name, f"RSL 1.0 {section}", says, value, within, "element")
            for name, section, says, value, within in _ELEMENTS
        ),
        *(
            Directive(name, f"RSL 1.0 {section}", says, value, within, "attribute")
            for name, section, says, value, within in _ATTRIBUTES
        ),
        Directive(
            "License",
            "RSL 1.0 section-4.4",
            "Where the RSL document stands that licenses the site",
            "url",
        ),
        Directive(
            "Link",
            "RSL 1.0 section-4.5",
            "Where the RSL document stands that licenses the response",
            "link",
            form="field",
        ),
    ),
    values={
        "usage": {usage: _USAGES[usage] for usage in GENERAL},
        "user": {user: _WORDS_OF_USERS[user] for user in sorted(USERS)},
        "list-type": {
            "usage": "usages",
            "user": "classes of users",
            "geo": "countries, as codes such as `DE`",
        },
        "payment": {
            "free": "nothing",
            "attribution": "that the source is named",
            "purchase": "a price, once",
            "subscription": "a price for each period",
            "crawl": "a price for each page that is fetched",
            "training": "a price for training",
            "inference": "a price for each answer",
            "use": "a price for each use",
            "contribution": "a contribution in good faith",
        },
        "legal": {kind: _WORDS_OF_LEGAL[kind] for kind in LEGAL_TYPES},
        "boolean": {"true": "yes", "false": "no"},
        "link": {
            '<https://example.com/license.xml>; rel="license"; '
            'type="application/rsl+xml"': "a license"
        },
    },
    kinds=(FileKind("rsl.xml", lambda name, body: root_name(body) == "rsl", check_rsl),),
    check_site=check_site,
    check_document=check_document,
)
