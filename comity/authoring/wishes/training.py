"""Wishes about training, beside search and archives."""

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
    ORIGIN,
    RFC,
    RSL,
    SIGNALS,
    SPAWNING,
    TDMREP,
    TRAINING_CRAWLERS,
    TRAINING_ONLY,
    TRAINING_RULES,
    TRUST,
    USAGE,
    Artefact,
    Form,
    Unsaid,
    Wish,
    in_ai_txt,
    in_group,
    in_robots,
    rsl,
    unsaid,
)

NO_TRAINING_CRAWLERS = (*(f"User-agent: {name}" for name in TRAINING_CRAWLERS), "Disallow: /")
ACAP_NO_OTHER = (
    "ACAP-crawler: *",
    "ACAP-allow-crawl: /",
    "ACAP-allow-follow: /",
    "ACAP-allow-index: /",
    "ACAP-allow-preserve: /",
    "ACAP-allow-present: /",
    "ACAP-disallow-other: /",
)

NO_TRAINING = Wish(
    "no-training",
    "No training",
    "Nobody may train models with the site. Nothing else changes.",
    (
        Form(
            RFC,
            (in_robots(*NO_TRAINING_CRAWLERS, "", "User-agent: *", "Disallow:"),),
            "The file refuses all requests of the crawlers in it. The format has no word for "
            "training, so other crawlers are not bound.",
        ),
        Form(
            ACAP,
            (in_robots(*ACAP_NO_OTHER),),
            "The format has no word for training. `other` refuses every use that no line names,"
            " including the use `search` of later formats.",
        ),
        Form(
            USAGE,
            (in_group("Usage: ai=n"),),
            "The format has no word for training alone: `ai` means training and any use of a "
            "model.",
        ),
        Form(
            USAGE,
            (Artefact(FIELD, "Usage-Pref: ai=n\n"),),
            "The field refuses training and any use of a model, for the content of the response.",
        ),
        Form(
            AIPREF,
            (in_group("Content-Usage: train-ai=n"),),
            "The file says exactly this.",
        ),
        Form(
            AIPREF,
            (Artefact(FIELD, "Content-Usage: train-ai=n\n"),),
            "The field says exactly this, for the content of the response.",
        ),
        Form(
            SIGNALS,
            (in_group("Content-Signal: ai-train=no"),),
            "The file says exactly this. Repeat the line in every group for a single crawler.",
        ),
        Form(
            TRAINING_RULES,
            (in_group("DisallowAITraining: /"),),
            "The file says exactly this.",
        ),
        Form(
            TRUST,
            (Artefact("/trust.txt", "datatrainingallowed=no\n"),),
            "The file says exactly this.",
        ),
        Form(
            AI_TXT,
            (in_ai_txt("Disallow: Train"),),
            "The file says exactly this for HTML, JSON and XML, but not for images and other "
            "files.",
        ),
        Form(
            SPAWNING,
            (Artefact("/ai.txt", "User-Agent: *\nDisallow: /\n"),),
            "The file says exactly this. A site has only one ai.txt: choose this format or the "
            "other.",
        ),
        Form(
            META,
            (Artefact(ELEMENT, '<meta name="robots" content="noai, noimageai">\n'),),
            "The format has no word for training alone: `noai` means any use for AI. No search "
            "engine documents it.",
        ),
        Form(
            META,
            (Artefact(FIELD, "X-Robots-Tag: noai, noimageai\n"),),
            "The field says the same as the element, for files of any type.",
        ),
        Form(
            TDMREP,
            (Artefact("/.well-known/tdmrep.json", '[{"location": "/", "tdm-reservation": 1}]\n'),),
            "The file reserves the right to mine text and data. Training is part of that. Other "
            "mining is refused too.",
        ),
        Form(
            TDMREP,
            (Artefact(FIELD, "tdm-reservation: 1\n"),),
            "The field reserves the right to mine the content of the response.",
        ),
        Form(
            TDMREP,
            (Artefact(ELEMENT, '<meta name="tdm-reservation" content="1">\n'),),
            "The element reserves the right to mine the page.",
        ),
        Form(
            RSL,
            rsl('<prohibits type="usage">ai-train</prohibits>'),
            "The document says exactly this.",
        ),
    ),
    (
        Unsaid(
            AUTOMATION,
            "The format can list the purposes of welcome requests, but not the purposes of "
            "unwelcome ones.",
        ),
    ),
    phrases=(
        "no AI training",
        "no training of AI",
        "do not train",
        "do not train on it",
        "do not train AI",
        "no machine learning",
        "forbid training",
        "block training",
    ),
    defaults=(
        RFC,
        AIPREF,
        SIGNALS,
    ),
    parameters=(ORIGIN,),
)

NO_TRAINING_BUT_SEARCH = Wish(
    "no-training-but-search",
    "No training, but search",
    "Nobody may train models with the site. Search engines may use it.",
    (
        Form(
            RFC,
            (in_robots(*NO_TRAINING_CRAWLERS, "", "User-agent: *", "Disallow:"),),
            "The file is the same as for no training. It does not contain the crawlers of search"
            " engines, so they may fetch. The format cannot say that search is permitted.",
        ),
        Form(
            ACAP,
            (in_robots(*ACAP_NO_OTHER),),
            "The file is the same as for no training. It permits indexing and showing by name. "
            "The use `search` of later formats is neither of them, so `other` refuses it.",
        ),
        Form(
            AUTOMATION,
            (
                Artefact(
                    AUTOMATION_FILE,
                    "scope: /\nallowed-methods: GET, HEAD\nallowed-purposes: search\n",
                ),
            ),
            "The file permits requests for search and refuses all others: requests for "
            "training, requests without a purpose, and requests of forms, APIs and automated "
            "browsers.",
        ),
        Form(
            USAGE,
            (in_group("Usage: ai=n, search=y"),),
            "The format has no word for training alone: `ai` means training and any use of a "
            "model.",
        ),
        Form(
            USAGE,
            (Artefact(FIELD, "Usage-Pref: ai=n, search=y\n"),),
            "The field refuses training and any use of a model, and permits search, for the "
            "content of the response.",
        ),
        Form(
            AIPREF,
            (in_group("Content-Usage: train-ai=n, search=y"),),
            "The file says exactly this.",
        ),
        Form(
            AIPREF,
            (Artefact(FIELD, "Content-Usage: train-ai=n, search=y\n"),),
            "The field says exactly this, for the content of the response.",
        ),
        Form(
            SIGNALS,
            (in_group("Content-Signal: search=yes, ai-train=no"),),
            "The file says exactly this. Repeat the line in every group for a single crawler.",
        ),
        Form(
            AI_TXT,
            (
                in_ai_txt(
                    "Disallow: Train",
                    "Guide: Index",
                    "  Lang: en",
                    "  Guideline: Link to the page.",
                ),
            ),
            "The file refuses training, and permits indexes for AI with an instruction. A Guide "
            "must have an instruction.",
        ),
        Form(
            RSL,
            rsl(
                '<permits type="usage">search</permits>',
                '<prohibits type="usage">ai-train</prohibits>',
                '<payment type="free"/>',
            ),
            "The document says this and more: a list of permitted uses is exhaustive, so all "
            "other uses are not licensed.",
        ),
    ),
    (
        Unsaid(
            SPAWNING,
            f"{TRAINING_ONLY} The file for no training leaves search open.",
        ),
        Unsaid(META, "The format can only refuse. The element for no training leaves search open."),
        *unsaid(
            f"{TRAINING_ONLY} The file for no training leaves search open.", TRAINING_RULES, TRUST
        ),
        Unsaid(
            TDMREP,
            "The format is about mining as a whole. The file for no training leaves search open.",
        ),
    ),
    phrases=(
        "search but no training",
        "search yes training no",
        "training no search yes",
        "no training search allowed",
        "search only no training",
        "no AI training but search",
    ),
    defaults=(
        RFC,
        AIPREF,
        SIGNALS,
    ),
    parameters=(ORIGIN,),
)

NO_SEARCH_BUT_TRAINING = Wish(
    "no-search-but-training",
    "No search, but training",
    "Nobody may list the site in search results. Models may be trained with it.",
    (
        Form(
            ACAP,
            (in_robots("ACAP-crawler: *", "ACAP-disallow-index: /"),),
            "The file refuses an index. The format has no word for training, and leaves it open.",
        ),
        Form(
            USAGE,
            (in_group("Usage: ai=y, search=n"),),
            "The format has no word for training alone: `ai` means training and any use of a "
            "model. Mining as a whole is refused, because search is a part of it.",
        ),
        Form(
            USAGE,
            (Artefact(FIELD, "Usage-Pref: ai=y, search=n\n"),),
            "The field says the same as the file, for the content of the response.",
        ),
        Form(
            AIPREF,
            (in_group("Content-Usage: train-ai=y, search=n"),),
            "The file says exactly this. Mining as a whole is refused, because search is a part of"
            " it.",
        ),
        Form(
            AIPREF,
            (Artefact(FIELD, "Content-Usage: train-ai=y, search=n\n"),),
            "The field says the same as the file, for the content of the response.",
        ),
        Form(
            SIGNALS,
            (in_group("Content-Signal: search=no, ai-train=yes"),),
            "The file says exactly this. Mining as a whole is refused, because search is a part of"
            " it. Repeat the line in every group for a single crawler.",
        ),
        Form(
            AI_TXT,
            (in_ai_txt("Disallow: Index"),),
            "The file refuses indexes, and leaves training open.",
        ),
        Form(
            META,
            (Artefact(ELEMENT, '<meta name="robots" content="noindex">\n'),),
            "The element refuses an index, and that search results show any of the page. It leaves"
            " training open. Crawlers have to fetch the page to read it.",
        ),
        Form(
            META,
            (Artefact(FIELD, "X-Robots-Tag: noindex\n"),),
            "The field says the same as the element, for files of any type.",
        ),
        Form(
            RSL,
            rsl(
                '<permits type="usage">ai-train</permits>',
                '<prohibits type="usage">search</prohibits>',
                '<payment type="free"/>',
            ),
            "The document says this and more: a list of permitted uses is exhaustive, so all "
            "other uses are not licensed.",
        ),
    ),
    (
        Unsaid(
            RFC,
            "The format can only refuse the requests of search engines. Some of them fetch for "
            "training too.",
        ),
        Unsaid(
            AUTOMATION,
            "The format can list the purposes of welcome requests, but not the purposes of "
            "unwelcome ones.",
        ),
        *unsaid(TRAINING_ONLY, TRAINING_RULES, TRUST, SPAWNING),
        Unsaid(TDMREP, "The format has no word for search alone."),
    ),
    phrases=(
        "training but no search",
        "training yes search no",
        "search no training yes",
        "no search but training",
        "no search training allowed",
        "training only no search",
    ),
    defaults=(
        AIPREF,
        SIGNALS,
        META,
    ),
    parameters=(ORIGIN,),
)

_OPEN = "The format has no word for archives. The file for no training leaves them open."
ARCHIVES_BUT_NO_TRAINING = Wish(
    "archives-but-no-training",
    "Archives, but no training",
    "Archives may fetch and keep the site. Nobody may train models with it.",
    (
        Form(
            RFC,
            (in_robots(*NO_TRAINING_CRAWLERS, "", "User-agent: *", "Disallow:"),),
            "The file is the same as for no training. The crawlers of archives are not in it, so "
            "they may fetch. CCBot is in it: models are trained with the archive of Common Crawl.",
        ),
        Form(
            ACAP,
            (in_robots(*ACAP_NO_OTHER),),
            "The file is the same as for no training. It permits copies by name. `other` refuses "
            "every use that no line names, including the use `search` of later formats.",
        ),
        Form(
            AIPREF,
            (in_group("Content-Usage: train-ai=n"),),
            "The file is the same as for no training. The format has no word for archives, and "
            "leaves them open.",
        ),
        Form(
            SIGNALS,
            (in_group("Content-Signal: ai-train=no"),),
            "The file is the same as for no training. The format has no word for archives, and "
            "leaves them open.",
        ),
    ),
    (
        Unsaid(
            AUTOMATION,
            "The format can list the purposes of welcome requests, but not the purposes of "
            "unwelcome ones.",
        ),
        *unsaid(_OPEN, USAGE, TRAINING_RULES, TRUST, AI_TXT, SPAWNING, TDMREP, RSL),
        Unsaid(
            META, "The format can only refuse. The element for no training leaves archives open."
        ),
    ),
    phrases=(
        "archive yes training no",
        "archives yes training no",
        "archive but no training",
        "archives but no training",
        "no training but archive",
        "no training but archives",
        "archiving but no training",
    ),
    defaults=(
        RFC,
        AIPREF,
        SIGNALS,
    ),
)
