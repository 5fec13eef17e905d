"""The COMITY_* settings, read once and checked (docs/settings.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings
from scrapy.utils.project import data_path

from comity.policies import Agent, PolicyError, Verdict

DEFAULT_AGENT = "comitybot"

DEFAULTS: dict[str, Any] = {
    "COMITY_AGENT": DEFAULT_AGENT,
    "COMITY_PURPOSES": (),
    "COMITY_USES": (),
    "COMITY_DEFAULTS": {},
    "COMITY_DROP_UNUSABLE": True,
    "COMITY_STORE": "",
    "COMITY_POLICY_TIMEOUT": 15,
    "COMITY_MIN_DELAY": 1,
    "COMITY_MAX_DELAY": 300,
}


def stop(message: str) -> NoReturn:
    """Ends the program with one line: a crawl that goes on without its policies would be worse than none."""
    raise SystemExit(f"comity: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of one crawl."""

    agent: Agent
    drop_unusable: bool  # drop an item when none of the declared uses is left
    store: Path
    policy_timeout: float  # seconds for one policy file over all its hops
    min_delay: float  # seconds between two requests to a host, at least
    max_delay: float  # seconds; what asks for a longer wait is refused

    @classmethod
    def checked(cls, settings: BaseSettings) -> Self:
        """Ends the program where a setting makes no sense."""
        try:
            return cls.from_settings(settings)
        except PolicyError as error:
            stop(str(error))

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """PolicyError, with the setting's name and what to write instead, where a value makes no sense."""
        token = str(_get(settings, "COMITY_AGENT"))
        return cls(
            agent=Agent(
                token,
                user_agent=settings.get("USER_AGENT") or token,
                purposes=_names(settings, "COMITY_PURPOSES"),
                uses=tuple(use.lower() for use in _names(settings, "COMITY_USES")),
                defaults=_defaults(settings),
            ),
            drop_unusable=_flag(settings, "COMITY_DROP_UNUSABLE"),
            store=_store(settings),
            policy_timeout=_seconds(settings, "COMITY_POLICY_TIMEOUT", zero=False),
            min_delay=_seconds(settings, "COMITY_MIN_DELAY"),
            max_delay=_seconds(settings, "COMITY_MAX_DELAY"),
        )


def _get(settings: BaseSettings, name: str) -> Any:
    value = settings.get(name)
    return DEFAULTS[name] if value is None else value


def _seconds(settings: BaseSettings, name: str, *, zero: bool = True) -> float:
    value = _get(settings, name)
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not (math.isfinite(seconds) and (seconds >= 0 if zero else seconds > 0)):
        raise PolicyError(f"{name} `{value}` is not a number of seconds: write a number {'of at least' if zero else 'above'} 0")
    return seconds


def _flag(settings: BaseSettings, name: str) -> bool:
    value = _get(settings, name)
    if str(value).lower() in ("1", "true"):
        return True
    if str(value).lower() in ("0", "false"):
        return False
    raise PolicyError(f"{name} `{value}` is neither true nor false: write True or False")


def _names(settings: BaseSettings, name: str) -> tuple[str, ...]:
    value = _get(settings, name)
    names = value.split(",") if isinstance(value, str) else value
    try:
        return tuple(stripped for item in names if (stripped := str(item).strip()))
    except TypeError:
        raise PolicyError(f"{name} `{value}` is not a list of names: write them with commas between") from None


def _defaults(settings: BaseSettings) -> dict[str, Verdict]:
    """`{"index": "allow"}`, the same as JSON, or `index:allow,train:deny`."""
    value = _get(settings, "COMITY_DEFAULTS")
    remedy = 'write use:allow or use:deny with commas between, e.g. "index:allow,train:deny"'
    if isinstance(value, str):
        try:
            pairs = (
                json.loads(value)
                if value.lstrip().startswith("{")
                else dict(pair.split(":") for pair in value.split(",") if pair.strip())
            )
        except ValueError:
            raise PolicyError(f"COMITY_DEFAULTS `{value}` cannot be read: {remedy}") from None
    else:
        pairs = value
    if not isinstance(pairs, Mapping):
        raise PolicyError(f"COMITY_DEFAULTS `{value}` is not a mapping of uses: {remedy}")
    verdicts = {"allow": Verdict.ALLOW, "deny": Verdict.DENY}
    defaults = {}
    for use, word in pairs.items():
        verdict = verdicts.get(str(word).strip().lower())
        if verdict is None:
            raise PolicyError(f"COMITY_DEFAULTS `{use}:{word}` is neither allow nor deny: {remedy}")
        defaults[str(use).strip().lower()] = verdict
    return defaults


def _store(settings: BaseSettings) -> Path:
    value = str(_get(settings, "COMITY_STORE"))
    if "://" in value:
        raise PolicyError(f"COMITY_STORE `{value}` is a URL: write the path of a file")
    if value:
        return Path(value)
    try:
        return Path(data_path("comity/policies.sqlite", createdir=False))
    except NotConfigured:  # settings of a project, but no scrapy.cfg: as Scrapy has it outside of projects
        return Path(".scrapy/comity/policies.sqlite")
