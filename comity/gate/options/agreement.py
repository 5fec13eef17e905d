"""The settings in which all workers of one crawl agree.

Workers that decide differently would not be one crawl: whether a page is fetched, and how its items
may be used, would depend on the worker that leases its host. So a crawl keeps the settings with
which it begins. Texts have no credentials and no paths."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, NamedTuple, Self

import comity
from comity.dataset.tags.setting import TagSetting
from comity.gate.options.declared import SETTINGS
from comity.gate.options.kinds import Agrees
from comity.gate.request.purchases import LicenseToken, Payment
from comity.gate.request.sessions import DeclaredSession
from comity.gate.settings import Settings
from comity.policies import Arrangement, PolicyError, Verdict
from comity.policies.formats import FORMATS
from comity.policies.registry import OptOuts
from comity.policies.syntax.printable import printable
from comity.policies.vocabulary.table import Vocabulary

NOT_SET = "nothing"
_OF_HOST = Arrangement | DeclaredSession | LicenseToken | Payment  # values with a host
SPIDER = "spider"
# Settings of Scrapy that all workers of a crawl should have with the same value.
LIMITS = tuple(
    f"CLOSESPIDER_{limit}"
    for limit in (
        "TIMEOUT",
        "ITEMCOUNT",
        "PAGECOUNT",
        "ERRORCOUNT",
        "TIMEOUT_NO_ITEM",
        "PAGECOUNT_NO_ITEM",
    )
)


class Difference(NamedTuple):
    """A setting in which a worker differs from its crawl.

    Attributes:
        name: The setting, for a mapping with the key.
        crawl: The value of the crawl.
        worker: The value of the worker.
    """

    name: str
    crawl: str
    worker: str

    def __str__(self) -> str:
        name, crawl, worker = map(printable, self)
        return f"{name} is `{worker}` here, and `{crawl}` in the crawl"


@dataclass(frozen=True, slots=True)
class Agreement:
    """The settings of a crawl, or of a worker, as texts.

    Attributes:
        decides: Name -> value of the settings that decide about requests and uses.
        others: Name -> value of other settings that all workers should have with the same value.
    """

    decides: Mapping[str, str]
    others: Mapping[str, str]

    @classmethod
    def of(cls, settings: Settings, spider: str) -> Self:
        """Return the agreement of a worker. `spider`: its name. PolicyError: invalid settings."""
        decides = {
            "USER_AGENT": printable(str(settings.get("USER_AGENT") or "")),
            "version of comity": comity.__version__,
            "formats": ", ".join(sorted(format_.name for format_ in FORMATS)),
        }
        others = {SPIDER: printable(spider)}
        others |= {name: str(value) for name in LIMITS if (value := settings.get(name))}
        for setting in SETTINGS:
            if setting.agrees is not Agrees.NOT:
                texts = decides if setting.agrees is Agrees.MUST else others
                texts |= _texts(setting.name, setting.read(settings))
        return cls(decides, others)

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Read the settings of a crawl. PolicyError: they are not such settings."""
        try:
            found = json.loads(text)
            decides, others = (dict(found[name].items()) for name in ("decides", "others"))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise PolicyError(
                "COMITY_STATE: the settings of the crawl are unreadable: delete the crawl with"
                " `comity frontier NAME --delete`, or set COMITY_CRAWL to another name"
            ) from None
        return cls(
            *({str(name): str(value) for name, value in of.items()} for of in (decides, others))
        )

    def as_json(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True).encode()

    def decisive(self, worker: Agreement) -> list[Difference]:
        """Return the differences for which a worker may not join this crawl."""
        return _differences(self.decides, worker.decides)

    def harmless(self, worker: Agreement) -> list[Difference]:
        """Return the differences of which a worker is warned."""
        return _differences(self.others, worker.others)


def _differences(crawl: Mapping[str, str], worker: Mapping[str, str]) -> list[Difference]:
    names = sorted({*crawl, *worker})
    pairs = [
        Difference(name, crawl.get(name, NOT_SET), worker.get(name, NOT_SET)) for name in names
    ]
    return [pair for pair in pairs if pair.crawl != pair.worker]


def _texts(name: str, value: Any) -> dict[str, str]:
    """Return a setting as texts: one for each key of a mapping."""
    if isinstance(value, Mapping):
        return {f"{name} {printable(key)}": _text(member) for key, member in value.items()}
    if isinstance(value, OptOuts):
        return {
            f"{name} {printable(registry.name)}": f"sha256 {registry.sha256[:16]}"
            for registry in value.registries
        }
    if isinstance(value, tuple) and value and isinstance(value[0], _OF_HOST):
        by_host: dict[str, list[str]] = {}
        for member in value:
            by_host.setdefault(f"{name} {printable(member.host)}", []).append(_text(member))
        return {key: "; ".join(sorted(texts)) for key, texts in by_host.items()}
    return {name: text} if (text := _text(value)) else {}


def _text(value: Any) -> str:
    if isinstance(value, Verdict):
        return value.value
    if isinstance(value, Vocabulary):
        if value is Vocabulary.shipped():
            return "shipped"
        table = repr([*_plain(value.words), *_plain(value.relations)])
        return f"sha256 {sha256(table.encode()).hexdigest()[:16]}"
    if isinstance(value, Arrangement):
        licence = [f"licence {value.reference}".strip()] if value.uses else []
        return ", ".join([*sorted(value.features), *licence, *sorted(value.uses)])
    if isinstance(value, Payment):
        return f"max_price {value.max_price}, sum {value.sum}"
    if isinstance(value, LicenseToken):
        return "license token"
    if isinstance(value, DeclaredSession):
        facts = value.facts
        return f"human {facts.human_initiated}, since {facts.started_at}, {sorted(facts.carries)}"
    if isinstance(value, TagSetting):
        return f"{value.kind} {value.name}" if value.kind != "sidecar" else value.kind
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return ", ".join(sorted(map(str, value)))
    return str(value)


def _plain(value: Any) -> Iterator[Any]:
    """Yield the members of a collection in an order that is the same in each process."""
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield key, [*_plain(value[key])]
    elif isinstance(value, Collection) and not isinstance(value, str):
        members = sorted(value) if isinstance(value, frozenset | set) else value
        for member in members:
            yield [*_plain(member)]
    else:
        yield value
