"""Help for authors of usage preferences in a robots.txt."""

from __future__ import annotations

from comity.policies.formats.aipref.checks import check
from comity.policies.formats.aipref.fixes import FIXES
from comity.policies.formats.aipref.words import DICTIONARY_LABELS, STRING_LABELS
from comity.policies.formats.authoring import Authoring, Directive

_AGENT = ("User-agent",)


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
            "The permitted uses of the content, of all of it or below a path that comes first",
            "path preference",
            _AGENT,
        ),
        Directive(
            "Usage",
            "draft-thomson-aipref-sup section-6.1",
            "The permitted uses of the group's content, above its rules",
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
    values={
        "preference": _preferences(DICTIONARY_LABELS),
        "short-preference": _preferences(STRING_LABELS),
    },
    check_site=check,
    fixes=FIXES,
)
