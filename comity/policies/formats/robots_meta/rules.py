"""The rules of robots meta elements and X-Robots-Tag."""

from comity.policies.answers.rule import ERROR, FINDING, INFO, LIMITS, REFUSES, Example, Rule

RULES = {
    "robots-meta.disallow": Rule(
        REFUSES,
        "robots meta (docs/robots-meta.md)",
        "a robots meta element or an X-Robots-Tag field refuses",
    ),
    "robots-meta.limit": Rule(
        LIMITS,
        "robots meta (docs/robots-meta.md)",
        "a robots meta element or an X-Robots-Tag field limits uses that are permitted elsewhere",
    ),
    "robots-meta.unread": Rule(
        REFUSES,
        "robots meta (docs/robots-meta.md)",
        "robots meta elements or X-Robots-Tag fields exceed a limit: everything that "
        "they could refuse is refused",
    ),
    "robots-meta.agent": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "directives are for a named crawler only",
        severity=INFO,
        why="Only the crawler with this name obeys the directives. All others treat the page as "
        "if the element did not exist.",
        fix="Write `robots` for the name if you mean every crawler.",
        example=Example(
            bad="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="robots" content="max-snippet:50">\n'
            '<meta name="googlebot" content="noindex">\n',
            good="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="robots" content="noindex, max-snippet:50">\n',
        ),
    ),
    "robots-meta.unknown": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "a directive is unknown",
        why="Crawlers ignore a directive that they do not know, so it refuses nothing.",
        fix="Write a documented directive, such as `noindex`, or delete the word.",
        example=Example(
            bad='<!doctype html>\n<title>News</title>\n<meta name="robots" content="private">\n',
            good='<!doctype html>\n<title>News</title>\n<meta name="robots" content="noindex">\n',
        ),
    ),
    "robots-meta.value": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "the value of a directive cannot be read",
        severity=ERROR,
        why="Crawlers do not know which limit you mean. comity takes the strictest one, and "
        "others may ignore the directive.",
        fix="Write the directive without quotes, with a value that it has, such as "
        "`max-snippet:50` or `unavailable_after:2030-01-31`.",
        example=Example(
            bad="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="robots" content="max-snippet:short">\n',
            good="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="robots" content="max-snippet:50">\n',
        ),
    ),
    # Found for authors alone
    "robots-meta.attribute": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "an element has no `content`, or `property` or `http-equiv` instead of `name`",
        why="Most crawlers look for the attributes `name` and `content` only. They do not see "
        "the directives, so they index the page.",
        fix='Write `name="robots"`, and the directives in `content`.',
        example=Example(
            bad="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta property="robots" content="noindex">\n',
            good='<!doctype html>\n<title>News</title>\n<meta name="robots" content="noindex">\n',
        ),
    ),
    "robots-meta.contradiction": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "two directives contradict each other: the refusal counts",
        why="If two directives contradict each other, the refusal counts. A page that you want "
        "in search results is left out.",
        fix="Delete the directive that you do not mean.",
        example=Example(
            bad="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="robots" content="index, follow, noindex">\n',
            good="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="robots" content="index, follow">\n',
        ),
    ),
    "robots-meta.duplicate": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "a directive is repeated",
        severity=INFO,
        why="The second copy changes nothing. Perhaps you meant another directive.",
        fix="Delete it, or write the directive that you mean.",
        example=Example(
            bad="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="robots" content="noindex, nofollow, noindex">\n',
            good="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="robots" content="noindex, nofollow">\n',
        ),
    ),
    "robots-meta.informal": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "few readers know the directive",
        severity=INFO,
        why="No specification has `noai`, `noimageai` or `noml`, and most crawlers ignore them. "
        "Your page may still be used to train AI.",
        fix="Write `Content-Signal: ai-train=no` into robots.txt.",
        example=Example(
            bad='<!doctype html>\n<title>News</title>\n<meta name="robots" content="noai">\n',
            good={"robots.txt": "User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n"},
            name="page.html",
        ),
    ),
    "robots-meta.misspelled": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "a directive, its separator or the name of a crawler is misspelled",
        why="Crawlers ignore a misspelled directive, and directives for a crawler that does not "
        "exist. So they refuse nothing.",
        fix="Write the directive or the name as it is documented, and commas between directives.",
        example=Example(
            bad='<!doctype html>\n<title>News</title>\n<meta name="robots" content="noindx">\n',
            good='<!doctype html>\n<title>News</title>\n<meta name="robots" content="noindex">\n',
        ),
    ),
    "robots-meta.obsolete": Rule(
        FINDING,
        "robots meta (docs/robots-meta.md)",
        "no search engine reads the directive any more",
        severity=INFO,
        why="The directive was about a directory or a search box that no longer exists, so it "
        "changes nothing.",
        fix="Delete it.",
        example=Example(
            bad="<!doctype html>\n"
            "<title>News</title>\n"
            '<meta name="robots" content="noindex, noodp">\n',
            good='<!doctype html>\n<title>News</title>\n<meta name="robots" content="noindex">\n',
        ),
    ),
}
