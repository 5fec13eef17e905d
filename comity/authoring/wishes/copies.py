"""Wishes about snippets and copies of pages."""

from __future__ import annotations

from comity.authoring.wishes.wish import (
    ACAP,
    AI_TXT,
    AIPREF,
    AUTOMATION,
    ELEMENT,
    FIELD,
    META,
    REQUESTS_ONLY,
    RFC,
    RSL,
    SIGNALS,
    SPAWNING,
    TDMREP,
    TRAINING_ONLY,
    TRAINING_RULES,
    TRUST,
    USAGE,
    Artefact,
    Form,
    Parameter,
    Unsaid,
    Wish,
    in_robots,
    unsaid,
)

_NO_SNIPPETS = "The format has no word for snippets."
_NO_TIME = "The format has no word for the time of copies."
_NO_RETURN = (
    "The format has no word for snippets. `Return` refuses that AI shows any of the content, whole "
    "or in part."
)

NO_SNIPPETS = Wish(
    "no-snippets",
    "No snippets",
    "Nobody may show parts of the text, for example in search results. Search may still find "
    "the page.",
    (
        Form(
            ACAP,
            (
                in_robots(
                    "ACAP-crawler: *",
                    "ACAP-disallow-present-snippet: /",
                    "ACAP-disallow-present-oldsnippet: /",
                ),
            ),
            "The file says exactly this. No search engine is known to read it.",
        ),
        Form(
            META,
            (Artefact(ELEMENT, '<meta name="robots" content="nosnippet">\n'),),
            "The element says this, and also refuses whole copies and answers by AI. "
            "`max-snippet:50` permits 50 characters instead. `data-nosnippet` on an element "
            "refuses that element only.",
        ),
        Form(
            META,
            (Artefact(FIELD, "X-Robots-Tag: nosnippet\n"),),
            "The field says the same as the element, for files of any type.",
        ),
    ),
    (
        *unsaid(REQUESTS_ONLY, RFC, AUTOMATION),
        *unsaid(_NO_SNIPPETS, USAGE, AIPREF, TDMREP, RSL),
        Unsaid(SIGNALS, "The signal `search` covers an index and short excerpts together."),
        Unsaid(AI_TXT, _NO_RETURN),
        *unsaid(TRAINING_ONLY, TRAINING_RULES, TRUST, SPAWNING),
    ),
    phrases=(
        "no excerpts",
        "no previews",
        "no snippet",
        "forbid snippets",
    ),
    defaults=(META,),
)

SHORT_SNIPPETS = Wish(
    "short-snippets",
    "Short snippets",
    "Snippets, for example in search results, may have a number of words at most.",
    (
        Form(
            ACAP,
            (
                in_robots(
                    "ACAP-crawler: *",
                    "ACAP-allow-present-snippet: / max-length=$words-words",
                    "ACAP-allow-present-oldsnippet: / max-length=$words-words",
                ),
            ),
            "The file says exactly this.",
        ),
        Form(
            META,
            (Artefact(ELEMENT, '<meta name="robots" content="max-snippet:$characters">\n'),),
            "The element counts characters: six for each word. It also limits answers by AI and "
            "shown copies.",
        ),
        Form(
            META,
            (Artefact(FIELD, "X-Robots-Tag: max-snippet:$characters\n"),),
            "The field says the same as the element, for files of any type.",
        ),
    ),
    (
        *unsaid(REQUESTS_ONLY, RFC, AUTOMATION),
        *unsaid(_NO_SNIPPETS, USAGE, AIPREF, TDMREP, RSL),
        Unsaid(SIGNALS, "The signal `search` covers an index and short excerpts together."),
        Unsaid(AI_TXT, _NO_RETURN),
        *unsaid(TRAINING_ONLY, TRAINING_RULES, TRUST, SPAWNING),
    ),
    phrases=(
        "snippets of at most {words} words",
        "snippets of {words} words",
        "snippets at most {words} words",
        "at most {words} words",
        "no snippets longer than {words} words",
        "snippets up to {words} words",
    ),
    defaults=(
        ACAP,
        META,
    ),
    parameters=(Parameter("words", "number of words in a snippet", "30"),),
)

LIMITED_COPIES = Wish(
    "limited-copies",
    "Copies for some days",
    "Copies of pages may be kept for a number of days at most.",
    (
        Form(
            ACAP,
            (in_robots("ACAP-crawler: *", "ACAP-allow-preserve: / time-limit=$days-days"),),
            "The file says exactly this. The days count from the first copy of a page.",
        ),
    ),
    (
        *unsaid(REQUESTS_ONLY, RFC, AUTOMATION),
        *unsaid(_NO_TIME, USAGE, AIPREF, AI_TXT, TDMREP, RSL),
        Unsaid(SIGNALS, "`use=immediate` refuses that anything is kept, for any time."),
        *unsaid(TRAINING_ONLY, TRAINING_RULES, TRUST, SPAWNING),
        Unsaid(
            META,
            "The format knows a date, not a number of days. `unavailable_after` ends all showing "
            "of a page at that date.",
        ),
    ),
    phrases=(
        "keep at most {days} days",
        "keep for at most {days} days",
        "keep copies at most {days} days",
        "keep {days} days",
        "delete after {days} days",
        "no copies older than {days} days",
    ),
    defaults=(ACAP,),
    parameters=(Parameter("days", "number of days", "30"),),
)
