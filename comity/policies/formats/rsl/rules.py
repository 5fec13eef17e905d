"""The rules of RSL."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Example, Rule

RULES = {
    "rsl.permits": Rule(ALLOWS, "RSL 1.0", "a license permits it", names_licence=True),
    "rsl.prohibits": Rule(REFUSES, "RSL 1.0", "a license prohibits it"),
    "rsl.unlicensed": Rule(REFUSES, "RSL 1.0", "no usable license permits it"),
    "rsl.syntax": Rule(
        FINDING,
        "RSL 1.0",
        "the document cannot be read: it licenses nothing",
        severity=ERROR,
        why="Readers cannot read a document with an error in its XML. So it licenses nothing, "
        "not even the uses that you permit.",
        fix="Close every element, and write `&amp;` for each `&`.",
        example=Example(
            bad='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/search?q=news&page=*">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            good='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/search?q=news&amp;page=*">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            name="rsl.xml",
        ),
    ),
    "rsl.value": Rule(
        FINDING,
        "RSL 1.0",
        "an element or value is not part of RSL",
        severity=ERROR,
        why="An element, attribute or word that RSL does not define may be a condition. comity "
        "assumes that no crawler meets it, so the license permits nothing.",
        fix="Write only elements, attributes and words of RSL 1.0, with spaces between words.",
        example=Example(
            bad='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            '    <license><permits type="usage">search, ai-input</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            good='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            '    <license><permits type="usage">search ai-input</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            name="rsl.xml",
        ),
    ),
    "rsl.limit": Rule(
        FINDING,
        "RSL 1.0",
        "the document exceeds a limit",
        severity=ERROR,
        why="Crawlers do not read documents of unlimited size. comity reads 512 KiB, 1,000 "
        "contents and 1,000 licenses. A larger document grants no license.",
        fix="Write fewer contents and licenses, with `*` or the path of a folder in `url`.",
        example=Example(
            bad='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            good='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            name="rsl.xml",
            repeated='    <license><permits type="usage">search</permits></license>\n',
            times=1001,
        ),
    ),
    # Found for authors alone
    "rsl.contradiction": Rule(
        FINDING,
        "RSL 1.0 section-3.4",
        "a license permits and prohibits the same usage: it is not licensed",
        why="A usage that a license both permits and prohibits is not licensed, so the "
        "permission has no effect.",
        fix="Delete the word from `permits` or from `prohibits`.",
        example=Example(
            bad='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            "    <license>\n"
            '      <permits type="usage">search ai-train</permits>\n'
            '      <prohibits type="usage">ai-train</prohibits>\n'
            "    </license>\n"
            "  </content>\n"
            "</rsl>\n",
            good='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            "    <license>\n"
            '      <permits type="usage">search</permits>\n'
            '      <prohibits type="usage">ai-train</prohibits>\n'
            "    </license>\n"
            "  </content>\n"
            "</rsl>\n",
            name="rsl.xml",
        ),
    ),
    "rsl.namespace": Rule(
        FINDING,
        "RSL 1.0 section-3",
        "an element of another namespace has the name of an RSL element",
        why="A reader of RSL takes only elements of the RSL namespace. It ignores this element, "
        "so a license in it states nothing.",
        fix="Give the element the prefix of the root, or declare the namespace on the root "
        "without a prefix.",
        example=Example(
            bad='<r:rsl xmlns:r="https://rslstandard.org/rsl">\n'
            '  <r:content url="/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </r:content>\n"
            "</r:rsl>\n",
            good='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            name="rsl.xml",
        ),
    ),
    "rsl.no-permits": Rule(
        FINDING,
        "RSL 1.0 section-3.4",
        "a license permits no usage",
        why="A license permits only the usages that it names. This one names none, so it "
        "licenses nothing.",
        fix='Write the permitted usages, such as `<permits type="usage">search</permits>`.',
        example=Example(
            bad='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            '    <license><payment type="free"/></license>\n'
            "  </content>\n"
            "</rsl>\n",
            good='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            "    <license>\n"
            '      <permits type="usage">search</permits>\n'
            '      <payment type="free"/>\n'
            "    </license>\n"
            "  </content>\n"
            "</rsl>\n",
            name="rsl.xml",
        ),
    ),
    "rsl.other-host": Rule(
        FINDING,
        "RSL 1.0 section-3.3",
        "a content is at another host than the others",
        severity=INFO,
        why="A content applies to the host in its `url` only. Crawlers look for licenses of "
        "another host in the robots.txt and the pages of that host.",
        fix="Write a path, or move the content to a document of the other host.",
        example=Example(
            bad='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="https://example.com/news/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            '  <content url="https://example.org/news/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            good='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="https://example.com/news/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            name="rsl.xml",
        ),
    ),
    "rsl.pattern": Rule(
        FINDING,
        "RSL 1.0 section-3.3",
        "the url of a content probably matches nothing",
        why="Only `*`, and `$` at the end, have a special meaning in a `url`. All other "
        "characters have to be in the URL of the page, so the licenses probably apply to no "
        "page.",
        fix="Write the path as it is in your URLs, with `*` for any characters.",
        example=Example(
            bad='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/(news|blog)/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            good='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/news/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            '  <content url="/blog/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            name="rsl.xml",
        ),
    ),
    "rsl.reference": Rule(
        FINDING,
        "RSL 1.0 section-4",
        "other readers may ignore a reference to a document",
        why="Crawlers find your licenses only through this reference. A crawler that cannot "
        "follow it does not know that you license anything.",
        fix='Write the whole URL alone in a `License` line, and `rel="license"` in a link.',
        example=Example(
            bad="License: /rsl.xml\n\nUser-agent: *\nAllow: /\n",
            good="License: https://example.com/rsl.xml\n\nUser-agent: *\nAllow: /\n",
            name="robots.txt",
        ),
    ),
    "rsl.repeated": Rule(
        FINDING,
        "RSL 1.0 section-3.3",
        "two contents have the same url: both apply",
        why="Both contents apply to the pages. A use that either of them refuses is refused, "
        "even if the other one permits it.",
        fix="Merge the two contents.",
        example=Example(
            bad='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            '  <content url="/">\n'
            '    <license><permits type="usage">ai-input</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            good='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            '    <license><permits type="usage">ai-input</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            name="rsl.xml",
        ),
    ),
    "rsl.server": Rule(
        FINDING,
        "RSL 1.0 section-3.3",
        "a license must be requested from a server: without it nothing is licensed",
        severity=INFO,
        why="The license holds only for a crawler that has requested it from the server. To all "
        "others, this content licenses nothing.",
        fix="Delete `server`, unless you run a license server at this address.",
        example=Example(
            bad='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/" server="https://example.com/license">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            good='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            '    <license><permits type="usage">search</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            name="rsl.xml",
        ),
    ),
    "rsl.usage": Rule(
        FINDING,
        "RSL 1.0 section-3.4.1.1",
        "a misspelled usage",
        why="Readers compare words exactly. A misspelled word permits nothing, so the use that "
        "you mean is not licensed.",
        fix="Write a usage of RSL: `all`, `search`, `ai-all`, `ai-train`, `ai-input` or "
        "`ai-index`.",
        example=Example(
            bad='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            '    <license><permits type="usage">search train-ai</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            good='<rsl xmlns="https://rslstandard.org/rsl">\n'
            '  <content url="/">\n'
            '    <license><permits type="usage">search ai-train</permits></license>\n'
            "  </content>\n"
            "</rsl>\n",
            name="rsl.xml",
        ),
    ),
}
