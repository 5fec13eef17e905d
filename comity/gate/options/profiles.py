"""Profiles: lists of settings for common wishes (COMITY_PROFILE, docs/profiles.md).

A profile is a list of settings and nothing else. Each of them applies unless the operator sets it.

Each profile declares one use. So a site that refuses this use is not crawled, and a page that
refuses it yields no item. With a second use, one permitted use would be enough for both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from comity.gate.options.errors import invalid
from comity.gate.settings import Settings

NAME = "COMITY_PROFILE"


@dataclass(frozen=True, slots=True)
class Profile:
    """The settings for one wish.

    Attributes:
        wish: The wish, in a few words.
        settings: The settings by name, each with its value and the reason for the value. The
            values are written as the operator would write them.
    """

    wish: str
    settings: Mapping[str, tuple[str | dict[str, str], str]]

    def get(self, name: str, default: Any) -> Any:
        """Return the value of a setting, or `default` if the profile does not list it."""
        value, _ = self.settings.get(name, (default, ""))
        return value

    def lines(self) -> Iterator[str]:
        """Yield the settings as the lines of a settings.py, each below its reason."""
        for name, (value, why) in self.settings.items():
            yield f"# {why}"
            yield f"{name} = {json.dumps(value)}"


NO_PROFILE = Profile("no profile", {})

_PURPOSE = "Servers are told this purpose. A site that lists other purposes only is not crawled."
_ELEMENTS = "The parts of a page that refuse the use are cut out of its item."

PROFILES: Mapping[str, Profile] = {
    "search": Profile(
        "a search engine that finds pages and links to them",
        {
            "COMITY_PURPOSES": ("search", _PURPOSE),
            "COMITY_USES": (
                "search",
                "Everything that refuses `index` refuses `search` too, but not the other way"
                " round. Showing snippets is another use.",
            ),
            "COMITY_DEFAULTS": (
                {"search": "allow", "index": "allow"},
                "Search engines document that a page without `noindex` may be indexed. Sites rely"
                " on that, and rarely state a permission.",
            ),
            "COMITY_ELEMENTS": ("redact", _ELEMENTS),
        },
    ),
    "archive": Profile(
        "an archive that keeps pages and shows them to nobody yet",
        {
            "COMITY_PURPOSES": ("archive", _PURPOSE),
            "COMITY_USES": ("preserve", "Showing the kept pages (`present`) is another use."),
            "COMITY_DEFAULTS": (
                {"preserve": "allow"},
                "Sites refuse copies by `noarchive`. Only ACAP can permit them, and few sites"
                " have it.",
            ),
        },
    ),
    "training": Profile(
        "a corpus for training models",
        {
            "COMITY_PURPOSES": ("training", _PURPOSE),
            "COMITY_USES": (
                "train",
                "A refusal of training of any kind, of generative AI, of all AI or of mining"
                " refuses it.",
            ),
            "COMITY_DEFAULTS": (
                {"train": "deny"},
                "Silence is not permission. Sites that permit training can say so in many formats.",
            ),
            "COMITY_ELEMENTS": ("redact", _ELEMENTS),
        },
    ),
    "research": Profile(
        "text and data mining for a study",
        {
            "COMITY_PURPOSES": ("research", _PURPOSE),
            "COMITY_USES": (
                "tdm",
                "It is the most general use. If a site does not permit mining by name, its refusal"
                " of training, AI or search refuses it.",
            ),
            "COMITY_DEFAULTS": (
                {"tdm": "allow"},
                "Article 4 of Directive (EU) 2019/790 permits mining that is not reserved. Write"
                " `tdm:deny` if another law applies to you.",
            ),
            "COMITY_ELEMENTS": ("redact", _ELEMENTS),
        },
    ),
    "monitoring": Profile(
        "a watch for changes, whose pages are compared and not published",
        {
            "COMITY_PURPOSES": ("monitoring", _PURPOSE),
            "COMITY_USES": (
                "monitor",
                "No format has a word for it. A refusal of all mining, of all AI or of all storage"
                " refuses every use without a word.",
            ),
            "COMITY_DEFAULTS": (
                {"monitor": "allow"},
                "No site can permit a use without a word, so silence has to do.",
            ),
        },
    ),
}


def profile_name(name: str, value: Any) -> str:
    """Read the name of a profile. "" means none. PolicyError: there is no such profile."""
    chosen = str(value).strip().lower()
    if chosen and chosen not in PROFILES:
        *others, last = PROFILES
        words = f"write {', '.join(others)} or {last}"
        if matches := get_close_matches(chosen, PROFILES, 1):
            words = f"did you mean `{matches[0]}`? Else {words}"
        raise invalid(name, value, f"is not a profile: {words}")
    return chosen


def profile_of(settings: Settings) -> Profile:
    """Return the chosen profile. PolicyError: there is no such profile."""
    return PROFILES.get(profile_name(NAME, settings.get(NAME) or ""), NO_PROFILE)


def note_of_profile(settings: Settings) -> str:
    """Return a line with the settings of the chosen profile, and the names that it cannot set."""
    profile = profile_of(settings)
    own = [name for name in profile.settings if settings.get(name) is not None]
    applied = [
        f"{name} = {json.dumps(value)}"
        for name, (value, _) in profile.settings.items()
        if name not in own
    ]
    return f"{NAME} `{settings.get(NAME)}` sets {', '.join(applied) or 'nothing'}" + (
        f". Your own settings replace its {', '.join(own)}" if own else ""
    )
