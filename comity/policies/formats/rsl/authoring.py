"""Help for authors of RSL documents, and of references to them."""

from __future__ import annotations

from comity.policies.formats.authoring import Authoring, Directive, FileKind
from comity.policies.formats.rsl.checks import check_document, check_rsl, check_site
from comity.policies.formats.rsl.fixes import FIXES
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
    ("content", "section-3.3", "The resources that its licenses are about", "", ("rsl",)),
    ("license", "section-3.4", "One set of terms", "", ("content",)),
    (
        "permits",
        "section-3.4",
        "The usages that the license permits, or the users or places that it is for",
        "",
        ("license",),
    ),
    (
        "prohibits",
        "section-3.4",
        "The prohibited usages, or the users or places that the license is not for",
        "",
        ("license",),
    ),
    ("payment", "section-3.4", "The payment or contribution in return", "", ("license",)),
    ("reporting", "section-3.4", "The required report of the use", "", ("license",)),
    ("legal", "section-3.13", "The warranties and disclaimers of the publisher", "", ("license",)),
    ("alternate", "section-3.14", "Another URL of the same content", "url", ("content",)),
    (
        "schema",
        "section-3.3",
        "A description of the content in the words of schema.org",
        "url",
        ("content",),
    ),
    ("copyright", "section-3.3", "The owner of the rights", "", ("content",)),
    ("terms", "section-3.3", "The address of terms for people to read", "url", ("content",)),
)
_ATTRIBUTES = (
    (
        "max-age",
        "section-3.2.1",
        "The number of days that the document may be kept; 30 by default",
        "number",
        ("rsl",),
    ),
    (
        "url",
        "section-3.3",
        "The resources: a URL, or a pattern of paths",
        "path",
        ("content",),
    ),
    (
        "server",
        "section-3.3",
        "A server from which the license must be requested",
        "url",
        ("content",),
    ),
    ("encrypted", "section-3.3", "Whether the content is encrypted", "boolean", ("content",)),
    ("lastmod", "section-3.3", "The time of the last change of the content", "date", ("content",)),
    ("type", "section-3.4", "The kind of the list", "list-type", ("permits", "prohibits")),
    ("type", "section-3.4", "The payment or contribution in return", "payment", ("payment",)),
    ("type", "section-3.13", "Its kind", "legal", ("legal",)),
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
    "non-commercial": "users who earn nothing by it",
    "education": "schools and universities",
    "government": "authorities",
    "personal": "people for their own use",
}
_WORDS_OF_LEGAL = {
    "warranty": "a warranty of the publisher",
    "disclaimer": "a disclaimer of the publisher",
    "attestation": "an attestation of the publisher",
    "contact": "a contact for questions",
    "proof": "a proof of an attestation",
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
            "The address of the RSL document that licenses the site",
            "url",
        ),
        Directive(
            "Link",
            "RSL 1.0 section-4.5",
            "The address of the RSL document that licenses the response",
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
            "attribution": "the source must be named",
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
    fixes=FIXES,
)
