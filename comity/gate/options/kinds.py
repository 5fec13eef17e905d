"""Kinds of settings: the unit of a value, and the function that reads and checks it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Generic, TypeVar

from comity.gate.options.errors import invalid
from comity.gate.options.profiles import profile_of
from comity.gate.settings import Settings
from comity.policies.agent import PRODUCT_TOKEN

T = TypeVar("T")

# Terms of ACAP 1.0 section 2.5 and of later vocabularies. In the settings, `:` and `,` are
# separators.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
PURPOSE = re.compile(r"[A-Za-z0-9][!-~]*")  # ACAP 1.0 section-2.3.3: a name or a URI
NUMBER = re.compile(r"[0-9]{1,18}")
FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 section-5.6.2
MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of settings.

    Attributes:
        unit: The possible values, in Markdown, for docs/settings.md.
        parse: Reads a value. The arguments are the name of the setting and the value that the
            operator wrote. PolicyError: the value is invalid. The message has the name and a
            correct value.
    """

    unit: str
    parse: Callable[[str, Any], T]


class Agrees(Enum):
    """Whether all workers of a crawl at COMITY_STATE have the same value of a setting."""

    MUST = "It decides about requests or uses. A worker with another value is refused."
    SHOULD = "A worker with another value is warned."
    NOT = "Each worker has its own value."


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Generic[T]):
    """A setting. DEFAULTS, the checks and docs/settings.md are made from its declaration.

        MIN_DELAY = Setting(name="COMITY_MIN_DELAY", default=1, kind=SECONDS, meaning="...")
        MIN_DELAY.read(settings)

    Attributes:
        name: COMITY_ and the name.
        default: The value if neither the operator nor the chosen profile sets it. It is written as
            the operator would.
        kind: The unit, and how a value is read.
        meaning: The meaning, in Markdown, for docs/settings.md.
        agrees: Whether all workers of a crawl have the same value.
    """

    name: str
    default: Any
    kind: Kind[T]
    meaning: str
    agrees: Agrees = Agrees.NOT

    def read(self, settings: Settings) -> T:
        """Return the value: the operator's, else that of the profile, else the default.

        PolicyError: the value is invalid, or there is no profile of the chosen name."""
        value = settings.get(self.name)
        if value is None:
            value = profile_of(settings).get(self.name, self.default)
        return self.kind.parse(self.name, value)

    def attribute(self) -> T:
        """Return the field of a dataclass for the value of this setting.

        The metadata of the field has the setting under "setting". The field has no default."""
        value: T = field(metadata={"setting": self})
        return value


def _product_token(name: str, value: Any) -> str:
    text = str(value)
    if not PRODUCT_TOKEN.fullmatch(text):
        problem = "is not a product token: use letters, digits, `_` and `-` only"
        raise invalid(name, text, problem)
    return text


def _flag(name: str, value: Any) -> bool:
    if str(value).lower() in ("1", "true"):
        return True
    if str(value).lower() in ("0", "false"):
        return False
    raise invalid(name, value, "is neither true nor false: write True or False")


def _seconds(name: str, value: Any, *, zero: bool = True) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not (math.isfinite(seconds) and (seconds >= 0 if zero else seconds > 0)):
        least = "of at least" if zero else "above"
        raise invalid(name, value, f"is not a number of seconds: write a number {least} 0")
    return seconds


def _seconds_or_all(name: str, value: Any) -> float:
    return math.inf if str(value).lower() == "all" else _seconds(name, value)


def _number(name: str, value: Any) -> int:
    text = str(value).strip()
    if not NUMBER.fullmatch(text):
        raise invalid(name, text, "is not a whole number: write one of at least 0")
    return int(text)


def _port(name: str, value: Any) -> int | None:
    text = str(value).strip()
    if not text:
        return None
    if not NUMBER.fullmatch(text) or int(text) > MAX_PORT:
        problem = "is not a port: write a number up to 65535, or 0 for any free port"
        raise invalid(name, text, problem)
    return int(text)


def _field_name(name: str, value: Any) -> str:
    text = str(value)
    if not FIELD_NAME.fullmatch(text):
        raise invalid(name, text, "is not a name of a header field: use letters, digits and `-`")
    return text


def _optional_field_name(name: str, value: Any) -> str:
    return _field_name(name, value) if str(value) else ""


def _items(name: str, value: Any, pattern: re.Pattern[str], problem: str) -> tuple[str, ...]:
    """Read a list of texts that match a pattern. `problem`: about an item that does not match."""
    try:
        items = [
            str(item).strip() for item in (value.split(",") if isinstance(value, str) else value)
        ]
    except TypeError:
        raise invalid(
            name, value, "is not a list of names: write them with commas between"
        ) from None
    for item in items:
        if item and not pattern.fullmatch(item):
            raise invalid(name, item, problem)
    return tuple(filter(None, items))


def _names(name: str, value: Any) -> tuple[str, ...]:
    """Read a list of names. They become lower case, and each is returned once."""
    problem = "is not a name: use letters, digits, `-`, `.` and `_`, and commas between names"
    return tuple(dict.fromkeys(item.lower() for item in _items(name, value, NAME, problem)))


def _names_or_uris(name: str, value: Any) -> tuple[str, ...]:
    problem = "is neither a name nor a URI: write them with commas between"
    return _items(name, value, PURPOSE, problem)


def one_of(*words: str) -> Kind[str]:
    """Return the kind of settings that have one of several words."""

    def parse(name: str, value: Any) -> str:
        word = str(value).lower()
        if word not in words:
            raise invalid(name, word, f"is unknown: write {', '.join(words[:-1])} or {words[-1]}")
        return word

    shown = [f"`{word}`" for word in words]
    return Kind(f"{', '.join(shown[:-1])} or {shown[-1]}", parse)


def text_of(unit: str) -> Kind[str]:
    """Return the kind of settings with any text. Their readers check it."""
    return Kind(unit, lambda name, value: str(value))


TOKEN = Kind("product token", _product_token)
FLAG = Kind("True or False", _flag)
SECONDS = Kind("seconds, 0 or more", _seconds)
SECONDS_ABOVE_0 = Kind("seconds, above 0", partial(_seconds, zero=False))
SECONDS_OR_ALL = Kind("seconds, 0 or more, or `all`", _seconds_or_all)
NUMBER_OR_0 = Kind("number, 0 or more", _number)
PORT = Kind('port, or `""`', _port)
NAMES = Kind("list of names", _names)
NAMES_OR_URIS = Kind("list of names or URIs", _names_or_uris)
HEADER_FIELD = Kind("name of a header field", _field_name)
OPTIONAL_HEADER_FIELD = Kind('name of a header field, or `""`', _optional_field_name)
