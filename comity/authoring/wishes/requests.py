"""Wishes about requests: their number, their crawlers and their purposes."""

from __future__ import annotations

from comity.authoring.wishes.wish import (
    ACAP,
    AI_TXT,
    AIPREF,
    AUTOMATION,
    AUTOMATION_FILE,
    ELEMENT,
    FIELD,
    META,
    RFC,
    RSL,
    SIGNALS,
    SPAWNING,
    TDMREP,
    TRAINING_RULES,
    TRUST,
    USAGE,
    USES_ONLY,
    Artefact,
    Form,
    Parameter,
    Unsaid,
    Wish,
    in_ai_txt,
    in_group,
    in_robots,
    unsaid,
)

_CRAWLERS = Parameter("crawlers", "names of the crawlers", "examplebot", is_required=True)
# The ends of the addresses of images, for the types that browsers show.
_ENDINGS = ("avif", "gif", "jpeg", "jpg", "png", "svg", "webp")
_IMAGES = tuple(f"/*.{ending}{end}" for ending in _ENDINGS for end in ("$$", "?"))

SLOWER = Wish(
    "slower",
    "Slower",
    "Crawlers may fetch everything, but not so fast.",
    (
        Form(
            RFC,
            (in_group("Crawl-delay: $seconds"),),
            "The line is not in RFC 9309, but old and widely obeyed. Google ignores it. Repeat "
            "the line in every group for a single crawler.",
        ),
        Form(
            RFC,
            (in_group("Request-rate: 1/$seconds"),),
            "This line is older and rarer. It can be limited to times of the day.",
        ),
        Form(
            AUTOMATION,
            (
                Artefact(
                    AUTOMATION_FILE,
                    "scope: /\nallowed-methods: GET, HEAD\n"
                    "request-limit: $limit\nconcurrent-limit: 1\n",
                ),
            ),
            "The group limits all requests together to a number in a time, and to one at a "
            "time. It refuses forms, APIs and automated browsers, unless you add them.",
        ),
    ),
    (
        *unsaid(
            "The format has no word for the rate of requests.",
            *(ACAP, USAGE, AIPREF, SIGNALS, TRAINING_RULES, TRUST),
            *(AI_TXT, SPAWNING, META, TDMREP, RSL),
        ),
    ),
    phrases=(
        "one request each {seconds} seconds",
        "one request every {seconds} seconds",
        "wait {seconds} seconds",
        "{seconds} seconds between requests",
        "crawl delay {seconds}",
        "crawl slower",
        "not so fast",
    ),
    defaults=(RFC,),
    parameters=(Parameter("seconds", "seconds between two requests", "10"),),
)

NOBODY_BUT = Wish(
    "nobody-but",
    "Nobody but X",
    "The crawlers that you name may fetch and use everything, and no others may fetch anything.",
    (
        Form(
            RFC,
            (in_robots("User-agent: $crawlers", "Disallow:", "", "User-agent: *", "Disallow: /"),),
            "The file says exactly this about requests.",
        ),
        Form(
            ACAP,
            (
                in_robots(
                    "ACAP-crawler: $crawlers",
                    "ACAP-allow-crawl: /",
                    "ACAP-allow-other: /",
                    "",
                    "ACAP-crawler: *",
                    "ACAP-disallow-crawl: /",
                    "ACAP-disallow-other: /",
                ),
            ),
            "The file says exactly this about requests and about every use.",
        ),
        Form(
            AUTOMATION,
            (
                Artefact(
                    AUTOMATION_FILE,
                    "scope: /\nallowed-methods:\n\n"
                    "scope: /\nuser-agent: $crawlers\nallowed-methods: GET, HEAD\n",
                ),
            ),
            "The file says this about requests by GET and HEAD. Forms, APIs and automated "
            "browsers are refused to them too, unless you add them.",
        ),
    ),
    (
        *unsaid(USES_ONLY, USAGE, AIPREF, TRAINING_RULES, TRUST, SPAWNING),
        Unsaid(
            SIGNALS, USES_ONLY + " A refusal to others, in a group for `*`, applies to them too."
        ),
        Unsaid(AI_TXT, USES_ONLY + " A block for one crawler cannot lift a refusal to everybody."),
        Unsaid(META, USES_ONLY + " An element for one crawler cannot lift a refusal to everybody."),
        Unsaid(TDMREP, "The format cannot address a crawler by name."),
        Unsaid(RSL, USES_ONLY + " It licenses kinds of users, never a user by name."),
    ),
    phrases=(
        "nobody but {crawlers}",
        "only {crawlers}",
        "nobody except {crawlers}",
        "nobody else but {crawlers}",
        "allow only {crawlers}",
    ),
    defaults=(RFC,),
    parameters=(_CRAWLERS,),
)

EVERYBODY_BUT = Wish(
    "everybody-but",
    "Everybody but X",
    "The crawlers that you name may fetch nothing. Everybody else may fetch everything.",
    (
        Form(
            RFC,
            (in_robots("User-agent: $crawlers", "Disallow: /", "", "User-agent: *", "Disallow:"),),
            "The file says exactly this about requests.",
        ),
        Form(
            ACAP,
            (
                in_robots(
                    "ACAP-crawler: $crawlers",
                    "ACAP-disallow-crawl: /",
                    "ACAP-disallow-other: /",
                ),
            ),
            "The file says exactly this about requests and about every use.",
        ),
        Form(
            AUTOMATION,
            (Artefact(AUTOMATION_FILE, "scope: /\nuser-agent: $crawlers\nallowed-methods:\n"),),
            "The file says exactly this about requests.",
        ),
    ),
    (
        *unsaid(USES_ONLY, USAGE, AIPREF, SIGNALS, TRAINING_RULES, TRUST, AI_TXT, SPAWNING, META),
        Unsaid(TDMREP, "The format cannot address a crawler by name."),
        Unsaid(RSL, USES_ONLY + " It licenses kinds of users, never a user by name."),
    ),
    phrases=(
        "everybody but {crawlers}",
        "everyone but {crawlers}",
        "everybody except {crawlers}",
        "everyone except {crawlers}",
        "all but {crawlers}",
        "block {crawlers}",
        "not {crawlers}",
    ),
    defaults=(RFC,),
    parameters=(_CRAWLERS,),
)

TEXT_BUT_NO_IMAGES = Wish(
    "text-but-no-images",
    "Text, but no images",
    "Nobody may fetch or use the images. The text stays open.",
    (
        Form(
            RFC,
            (in_robots("User-agent: *", *(f"Disallow: {path}" for path in _IMAGES)),),
            "The file knows images by the ends of their addresses. Images at other addresses stay "
            "open.",
        ),
        Form(
            ACAP,
            (in_robots("ACAP-crawler: *", *(f"ACAP-disallow-crawl: {path}" for path in _IMAGES)),),
            "The file knows images by the ends of their addresses. Images at other addresses stay "
            "open.",
        ),
        Form(
            AUTOMATION,
            (
                Artefact(
                    AUTOMATION_FILE,
                    "".join(f"scope: {path}\n" for path in _IMAGES) + "allowed-methods:\n",
                ),
            ),
            "The file knows images by the ends of their addresses. Images at other addresses stay "
            "open.",
        ),
        Form(
            AI_TXT,
            (in_ai_txt("Disallow: *", element="img, picture, svg", types=("html",)),),
            "The file refuses every action of AI on the images in a page. They may be fetched.",
        ),
        Form(
            SPAWNING,
            (
                Artefact(
                    "/ai.txt",
                    "User-Agent: *\n"
                    + "".join(f"Disallow: *.{ending}\n" for ending in _ENDINGS)
                    + "Allow: /\n",
                ),
            ),
            "The file says this about training only.",
        ),
        Form(
            META,
            (Artefact(ELEMENT, '<meta name="robots" content="noimageindex, noimageai">\n'),),
            "The element refuses previews with the images of the page, and their use for AI. They "
            "may be fetched.",
        ),
        Form(
            META,
            (Artefact(FIELD, "X-Robots-Tag: noimageindex, noimageai\n"),),
            "The field says the same as the element. Beside an image it refuses the index, and "
            "that search results show the image.",
        ),
    ),
    (
        *unsaid(
            "The format has no word for images.",
            *(USAGE, AIPREF, SIGNALS, TRAINING_RULES, TRUST, TDMREP, RSL),
        ),
    ),
    phrases=(
        "text yes images no",
        "images no text yes",
        "no images",
        "text but no images",
        "text only",
        "block images",
    ),
    defaults=(RFC,),
)

API_FOR_RESEARCH = Wish(
    "api-for-research",
    "API for research only",
    "Only requests for research may use the API. Everything else stays open.",
    (
        Form(
            ACAP,
            (
                in_robots(
                    "ACAP-crawler: *",
                    "ACAP-disallow-crawl: $path",
                    "ACAP-usage-purpose: research",
                    "ACAP-allow-crawl: $path",
                ),
            ),
            "The file says exactly this.",
        ),
        Form(
            AUTOMATION,
            (
                Artefact(
                    AUTOMATION_FILE,
                    "scope: $path\nallowed-methods: GET, HEAD, POST\n"
                    "allowed-purposes: research\napi-automation: open\n",
                ),
            ),
            "The file says exactly this about GET, HEAD and POST. Other methods, scripts and "
            "automated browsers are refused, unless you add them.",
        ),
    ),
    (
        Unsaid(RFC, "The format has no word for purposes. `Disallow: /api/` refuses everybody."),
        *unsaid(USES_ONLY, USAGE, AIPREF, SIGNALS, TRAINING_RULES, TRUST, AI_TXT, SPAWNING),
        *unsaid(USES_ONLY, META, TDMREP),
        Unsaid(RSL, USES_ONLY + " It has `education` among its kinds of users, not research."),
    ),
    phrases=(
        "API only for research",
        "research only API",
        "only research may use the API",
        "use the API for research only",
    ),
    defaults=(AUTOMATION,),
    parameters=(Parameter("path", "path of the API", "/api/"),),
)
