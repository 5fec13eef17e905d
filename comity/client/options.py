"""The options of a single request, which scripts say in the way that their library has for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from comity.client.admission import Admission
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_or_empty

KEYS = (
    "kind",
    "automations",
    "purposes",
    "referer",
    "session",
    "led_by",
)  # keywords of Client.admit


def admit_options(mapping: object, admission_of: Callable[[Any], Admission]) -> dict[str, Any]:
    """The keywords for `Client.admit`. PolicyError for what is none.

    `admission_of`: that of a response of the library, or of itself."""
    if not isinstance(mapping, Mapping):
        raise PolicyError(
            f"`{printable(str(mapping).encode(errors='replace'))}` is no mapping: write some of {', '.join(KEYS)}"
        )
    for key in mapping:
        if key not in KEYS:
            raise PolicyError(
                f"`{printable(str(key).encode(errors='replace'))}` is unknown: write some of {', '.join(KEYS)}"
            )
    options = dict(mapping)
    if options.get("led_by") is not None:
        options["led_by"] = admission_of(options["led_by"])
    return options


def redirect_options(options: dict[str, Any], leader: Admission, url: str) -> dict[str, Any]:
    """The keywords for the next hop of a redirect: the answer before leads there, and a session ends where another origin
    begins, as libraries leave credentials behind there.

    `leader`: the admission of the hop before."""
    if leader.facts.session is None or origin_or_empty(leader.url) != origin_or_empty(url):
        options.pop("session", None)
    return options | {"led_by": leader}
