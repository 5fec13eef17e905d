"""The help for those who write usage preferences in a robots.txt."""

from __future__ import annotations

from comity.policies.formats.authoring import Authoring, Directive

_AGENT = ("User-agent",)

# Label -> what it covers
STRING_LABELS = {
    "tdm": "any automated process that extracts information",
    "ai": "training or use of any machine learning system",
    "genai": "training or use of what can generate content",
    "search": "search indexes and applications",
}
DICTIONARY_LABELS = {
    "train-ai": "training of models that generate content",
    "search": "search applications that lead to the content",
    "ai-use": "input of a generative model",
    "ai-output": "what an AI system shows (draft 04)",
    "train-genai": "training of generative models (drafts 02 and 03)",
    "bots": "any automated processing (drafts 03 and 04)",
    "all": "any automated processing (draft 02)",
    "tdm": "text and data mining (draft 01)",
    "ai": "training of models (draft 01)",
    "genai": "training of generative models (draft 01)",
    "inference": "input of any model (draft 01)",
}


def _preferences(labels: dict[str, str]) -> dict[str, str]:
    preferences = {}
    for label, summary in labels.items():
        preferences[f"{label}=n"] = f"refused: {summary}"
        preferences[f"{label}=y"] = f"permitted: {summary}"
    return preferences


AUTHORING = Authoring(
    directives=(
        Directive(
            "Content-Usage",
            "draft-ietf-aipref-attach-05 robots",
            "What the content may be used for, all of it or below a path that stands first",
            "path preference",
            _AGENT,
        ),
        Directive(
            "Usage",
            "draft-thomson-aipref-sup section-6.1",
            "What the content of the group may be used for, above its rules",
            "short-preference",
            _AGENT,
        ),
        Directive(
            "Usage-Pref",
            "draft-thomson-aipref-sup-00 section-2",
            "The same as `Usage`, as the first revision of the draft spells it",
            "short-preference",
            _AGENT,
        ),
    ),
    values={"preference": _preferences(DICTIONARY_LABELS), "short-preference": _preferences(STRING_LABELS)},
)
