"""The wish that everybody may fetch and use everything."""

from __future__ import annotations

from comity.authoring.wishes.wish import (
    ACAP,
    AI_TXT,
    AIPREF,
    AUTOMATION,
    FIELD,
    META,
    ORIGIN,
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
    Unsaid,
    Wish,
    in_group,
    in_robots,
    rsl,
    unsaid,
)

_AIPREF = "train-ai=y, ai-use=y, search=y"
EVERYTHING = Wish(
    "everything",
    "Everything for everybody",
    "Everybody may fetch and use everything.",
    (
        Form(
            RFC,
            (in_group(),),
            "The file says exactly this about requests.",
        ),
        Form(
            ACAP,
            (
                in_robots(
                    "ACAP-crawler: *",
                    *(f"ACAP-allow-{usage}: /" for usage in ("crawl", "follow", "index")),
                    *(f"ACAP-allow-{usage}: /" for usage in ("preserve", "present", "other")),
                ),
            ),
            "The file says this about requests and the uses of the format. It permits no training,"
            " because the format has no word for it.",
        ),
        Form(
            USAGE,
            (in_group("Usage: tdm=y"),),
            "The file permits mining, with search and AI. It says nothing about snippets and "
            "copies.",
        ),
        Form(
            USAGE,
            (Artefact(FIELD, "Usage-Pref: tdm=y\n"),),
            "The field says the same as the file, for the content of the response.",
        ),
        Form(
            AIPREF,
            (in_group(f"Content-Usage: {_AIPREF}"),),
            "The file permits training, other use of models, and search. The format has no word "
            "for snippets and copies.",
        ),
        Form(
            AIPREF,
            (Artefact(FIELD, f"Content-Usage: {_AIPREF}\n"),),
            "The field says the same as the file, for the content of the response.",
        ),
        Form(
            SIGNALS,
            (in_group("Content-Signal: search=yes, ai-input=yes, ai-train=yes"),),
            "The file permits search, answers by models, and training. Repeat the line in every "
            "group for a single crawler.",
        ),
        Form(
            TRAINING_RULES,
            (in_group("AllowAITraining: /"),),
            "The file permits training.",
        ),
        Form(
            TRUST,
            (Artefact("/trust.txt", "datatrainingallowed=yes\n"),),
            "The file permits training.",
        ),
        Form(
            TDMREP,
            (Artefact("/.well-known/tdmrep.json", '[{"location": "/", "tdm-reservation": 0}]\n'),),
            "The file does not reserve the right to mine text and data.",
        ),
        Form(
            RSL,
            rsl('<permits type="usage">all</permits>', '<payment type="free"/>'),
            "The document permits every use for free.",
        ),
    ),
    (
        Unsaid(AUTOMATION, "The file can only restrict. Without it, everything is permitted."),
        *unsaid("The format can only refuse.", SPAWNING, META),
        Unsaid(AI_TXT, "The format permits only with an instruction for each action."),
    ),
    phrases=(
        "everything for everyone",
        "everything",
        "allow everything",
        "allow all",
        "everybody may do everything",
        "everyone may do everything",
        "no rules",
    ),
    defaults=(
        RFC,
        AIPREF,
        SIGNALS,
        TDMREP,
    ),
    parameters=(ORIGIN,),
)
