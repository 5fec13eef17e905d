"""Pack the choices and the unsaved files of a state into the fragment of a URL.

Browsers never send fragments to a server. A fragment may come from anybody, so it is checked.

fragment_of(state, saved)         the text after `#`
restore_state(state, fragment)    the state with the choices and files of a fragment"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any

from comity.authoring.workbench.state import MAX_FIELD, MAX_FILE, Choices, State
from comity.policies import Fetched, PolicyError
from comity.policies.syntax.printable import printable

MAX_FRAGMENT = 64 * 1024  # the maximum characters of a fragment
MAX_CONTENT = 1024 * 1024  # the maximum octets of an unpacked fragment
_URLS = ("page", "detail")  # choices that are URLs
_START = "1."  # the version of the format

_NO_LINK = "the link is incomplete, or not a link of a workbench"


def fragment_of(state: State, saved: Mapping[str, Fetched]) -> str:
    """Return the fragment for a state.

    `saved`: the files as they are saved, by absolute URL.
    PolicyError: the fragment would be longer than MAX_FRAGMENT."""
    files: dict[str, str] = {}
    for url, fetched in state.documents.items():
        if url not in saved or fetched.body != saved[url].body:
            files[state.name(url)] = base64.b64encode(fetched.body).decode()
    choices = {
        name: value
        for name, value in state.choices._asdict().items()
        if value != Choices._field_defaults[name]
    }
    choices |= {name: state.name(choices[name]) for name in _URLS if choices.get(name)}
    packed = zlib.compress(json.dumps({"choices": choices, "files": files}).encode(), 9)
    fragment = _START + base64.urlsafe_b64encode(packed).decode().rstrip("=")
    if len(fragment) > MAX_FRAGMENT:
        raise PolicyError(
            f"the files that are not saved are too long for a link: {len(fragment)} characters, "
            f"{MAX_FRAGMENT} fit"
        )
    return fragment


def restore_state(state: State, fragment: str) -> tuple[State, tuple[str, ...]]:
    """Return the state with the choices and files of a fragment, and the URLs of these files.

    A link may come from anybody, so it can only change files that the state has, and add policy
    files at the paths that crawlers request.
    PolicyError: the fragment is invalid, or contains any other file, or a file that is larger than
    MAX_FILE."""
    content = _content(fragment.removeprefix("#"))
    choices = _texts(content.get("choices"))
    files = {}
    for name, packed in _texts(content.get("files")).items():
        url = _url(state, name)
        if url not in state.documents and url not in state.missing:
            raise PolicyError(
                f"the link has a file `{printable(name)}` that does not belong to this site"
            )
        try:
            body = base64.b64decode(packed, validate=True)
        except (binascii.Error, ValueError):
            raise PolicyError(_NO_LINK) from None
        if len(body) > MAX_FILE:
            raise PolicyError(
                f"the link has a file `{printable(name)}` of more than {MAX_FILE // 1024} KiB"
            )
        files[url] = body
    for url, body in files.items():
        state = state.with_file(url, body)
    chosen = {name: value[:MAX_FIELD] for name, value in choices.items() if name in Choices._fields}
    chosen |= {name: _url(state, chosen[name]) for name in _URLS if chosen.get(name)}
    if chosen.get("page") not in state.pages:
        chosen.pop("page", None)
    return state.with_choices(
        **(Choices()._asdict() | {"page": state.choices.page} | chosen)
    ), tuple(files)


def _url(state: State, name: str) -> str:
    return state.origin + name if name.startswith("/") else name


def _content(fragment: str) -> dict[str, Any]:
    if not fragment.startswith(_START) or len(fragment) > MAX_FRAGMENT:
        raise PolicyError(_NO_LINK)
    try:
        octets = fragment.removeprefix(_START).encode("ascii")
        unpacker = zlib.decompressobj()
        packed = unpacker.decompress(
            base64.b64decode(octets + b"=" * (-len(octets) % 4), altchars=b"-_", validate=True),
            MAX_CONTENT,
        )
        if not unpacker.eof:
            raise PolicyError(_NO_LINK)
        content = json.loads(packed)
    except (ValueError, binascii.Error, zlib.error, RecursionError):
        raise PolicyError(_NO_LINK) from None
    if not isinstance(content, dict):
        raise PolicyError(_NO_LINK)
    return content


def _texts(value: object) -> dict[str, str]:
    """Return the members of a JSON object that are texts; {} if the value is no object."""
    if not isinstance(value, dict):
        return {}
    return {
        name: text
        for name, text in value.items()
        if isinstance(name, str) and isinstance(text, str)
    }
