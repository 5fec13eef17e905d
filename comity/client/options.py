"""The options of a single request, which scripts pass in the way of their library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from comity.client.admission import Admission
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import origin_or_empty

KEYS = ("kind", "automations", "purposes", "referer", "session", "led_by")  # of Client.admit
DOCUMENT_SECONDS = 5  # for the body of an answer with status 402, which may have the terms


def admit_options(mapping: object, admission_of: Callable[[Any], Admission]) -> dict[str, Any]:
    """Check options of a request, and return them as keywords for `Client.admit`.

    `mapping`: the options, e.g. `{"kind": "xhr", "led_by": response}`.
    `admission_of`: returns the admission for the value of `led_by`, which is a response of the
    library or an admission.
    PolicyError: `mapping` is not a mapping, or has an unknown key."""
    if not isinstance(mapping, Mapping):
        raise PolicyError(
            f"`{printable(str(mapping).encode(errors='replace'))}` is not a mapping:"
            f" write some of {', '.join(KEYS)}"
        )
    for key in mapping:
        if key not in KEYS:
            raise PolicyError(
                f"`{printable(str(key).encode(errors='replace'))}` is unknown:"
                f" write some of {', '.join(KEYS)}"
            )
    options = dict(mapping)
    if options.get("led_by") is not None:
        options["led_by"] = admission_of(options["led_by"])
    return options


def redirect_options(options: dict[str, Any], leader: Admission, url: str) -> dict[str, Any]:
    """Return the keywords for the next hop of a redirect.

    The next hop gets `led_by`. It has no session if it goes to another origin, because libraries
    remove credentials then, or if the hop before already had no session.
    `options`: the keywords of the first request; "session" may be removed from this dictionary.
    `leader`: the admission of the hop before. `url`: the URL of the next hop."""
    if leader.facts.session is None or origin_or_empty(leader.url) != origin_or_empty(url):
        options.pop("session", None)
    return options | {"led_by": leader}
