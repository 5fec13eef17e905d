"""Read the settings that are mappings, names of files or lists of certain words."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from comity.gate.options.errors import invalid
from comity.gate.options.kinds import NAME, NAMES
from comity.gate.request.purchases import LicenseToken, Payment
from comity.gate.request.sessions import DeclaredSession, declared_session, read_secret
from comity.policies import Arrangement, PolicyError, Price, Verdict
from comity.policies.agent import CONTENT_USAGE, FEATURES
from comity.policies.syntax.printable import MAX_SHOWN, printable
from comity.policies.syntax.urls import origin_of
from comity.policies.vocabulary.table import Vocabulary

REPORT_ENDINGS = (".html", ".htm", ".json")
HOST = re.compile(r"([^\s/\\?#@*:\[\]]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")


def use_defaults(name: str, value: Any) -> dict[str, Verdict]:
    """Read the verdicts for uses about which sites state nothing.

    `name`: the setting or option that messages name. `value`: the mapping `{"index": "allow"}`,
    this mapping as JSON, or `index:allow,train:deny`. PolicyError: the value is invalid."""
    remedy = 'write use:allow or use:deny with commas between, e.g. "index:allow,train:deny"'
    try:
        pairs = _pairs(value) if isinstance(value, str) else list(value.items())
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise invalid(name, value, f"is not a mapping of uses: {remedy}") from None
    verdicts = {"allow": Verdict.ALLOW, "deny": Verdict.DENY}
    defaults: dict[str, Verdict] = {}
    for use, word in pairs:
        key, verdict = str(use).strip().lower(), verdicts.get(str(word).strip().lower())
        if verdict is None or not NAME.fullmatch(key):
            raise invalid(name, f"{use}:{word}", f"is neither allow nor deny for a use: {remedy}")
        if defaults.setdefault(key, verdict) is not verdict:
            raise invalid(name, value, f"says both allow and deny for `{key}`")
    return defaults


Arranged = Arrangement | LicenseToken | Payment


def arrangements(name: str, value: Any) -> tuple[Arranged, ...]:
    """Read the arrangements with sites.

    `value`: the mapping `{"example.com": ["take-down", {"uses": ["train"]}]}`, this mapping as
    JSON, or `example.com:take-down,example.org:take-down`. PolicyError: the value is invalid.
    Messages never show a value that may contain a license token."""
    remedy = (
        'write host:feature with commas between, e.g. "example.com:take-down,example.com:re-crawl",'
        " or a mapping for licences"
    )
    try:
        pairs = _pairs(value) if isinstance(value, str) else list(value.items())
        pairs = [
            (host, [terms] if isinstance(terms, str) or hasattr(terms, "items") else list(terms))
            for host, terms in pairs
        ]
    except (AttributeError, TypeError, ValueError, RecursionError):
        shown = "..." if "license_token" in str(value) else value  # it may have the token itself
        raise invalid(name, shown, f"is not a mapping of hosts: {remedy}") from None
    features: dict[str, set[str]] = {}
    others: list[Arranged] = []
    for key, arranged in pairs:
        try:
            host = _host(str(key), with_wildcard=True)
        except ValueError:
            hosts = '"example.com", "example.com:8080" or "*.example.com"'
            raise invalid(name, key, f"is not a host: write {hosts}") from None
        for term in arranged:
            if hasattr(term, "items"):
                others.append(_mapping(name, host, dict(term.items())))
                continue
            feature = str(term).strip().lower()
            if feature not in FEATURES:
                raise invalid(name, term, f"cannot be arranged: write {', '.join(FEATURES)}")
            features.setdefault(host, set()).add(feature)
    for kind in (LicenseToken, Payment):
        by_host = Counter(other.host for other in others if isinstance(other, kind))
        if repeated := [host for host, number in by_host.items() if number > 1]:
            part = "license_token" if kind is LicenseToken else "max_price"
            raise invalid(name, repeated[0], f"has `{part}` more than once: write it once")
    return (*(Arrangement(host, frozenset(names)) for host, names in features.items()), *others)


def _mapping(name: str, host: str, members: dict[Any, Any]) -> Arranged:
    """Read an arrangement with a host that is a mapping."""
    if "license_token" in members:
        return _license_token(name, host, members)
    if members.keys() & {"max_price", "sum"}:
        return _payment(name, host, members)
    return _licence(name, host, members)


def _license_token(name: str, host: str, members: dict[Any, Any]) -> LicenseToken:
    """Read a license token, a mapping like `{"license_token": "env:RSL_TOKEN"}`."""
    _check_single(name, host)
    insecure = members.get("insecure", False)
    if members.keys() - {"license_token", "insecure"} or not isinstance(insecure, bool):
        raise PolicyError(
            f"{name} `{host}`: an arrangement with a license token has other parts: write"
            ' {"license_token": "env:VARIABLE"}, with "insecure": true for http'
        )
    try:
        token = read_secret("license_token", members["license_token"])
    except PolicyError as error:
        raise PolicyError(f"{name} `{host}`: {error}") from None
    return LicenseToken(host=host, token=token, insecure=insecure)


# The parts of a payment.
_OF_PAYMENT = {
    "max_price": "the highest price of one request",
    "sum": "the most that all requests of the crawl may cost together",
}


def _payment(name: str, host: str, members: dict[Any, Any]) -> Payment:
    """Read a payment, a mapping like `{"max_price": "USD 0.01", "sum": "USD 5"}`."""
    _check_single(name, host)
    remedy = 'write {"max_price": "USD 0.01", "sum": "USD 5"}'
    if unknown := members.keys() - _OF_PAYMENT.keys():
        raise invalid(name, next(iter(unknown)), f"is not a part of a payment: {remedy}")
    for key, meaning in _OF_PAYMENT.items():
        if key not in members:
            problem = f"has a payment without `{key}`, {meaning}: {remedy}"
            raise invalid(name, host, problem)
    prices = []
    for key in _OF_PAYMENT:
        text = members[key]
        price = Price.parse(text) if isinstance(text, str) else None
        if price is None or not price.amount:
            problem = (
                f"is not the `{key}` of a payment, a text with a currency and an amount above 0,"
                f" with at most 9 digits on each side of the point: {remedy}"
            )
            raise invalid(name, text, problem)
        prices.append(price)
    max_price, total = prices
    if max_price.currency != total.currency:
        raise invalid(name, members, f"has two currencies: {remedy}")
    if max_price.amount > total.amount:
        raise invalid(name, members, f"has a `max_price` above its `sum`: {remedy}")
    return Payment(host, max_price, total)


def _check_single(name: str, host: str) -> None:
    """Check that an arrangement is with one host. PolicyError: it is with all below a domain."""
    if host.startswith("*."):
        problem = "names several hosts: write payments and license tokens for each host"
        raise invalid(name, host, problem)


def _licence(name: str, host: str, members: dict[Any, Any]) -> Arrangement:
    """Read a licence in the setting `name`.

    It is a mapping like `{"uses": ["train"], "reference": "contract 2026/14"}`."""
    remedy = 'write {"uses": ["train"], "reference": "contract 7"}'
    if unknown := members.keys() - {"uses", "reference"}:
        raise invalid(name, next(iter(unknown)), f"is not a part of a licence: {remedy}")
    value, reference = members.get("uses"), members.get("reference", "")
    names = value.split(",") if isinstance(value, str) else value
    uses = (
        [str(use).strip().lower() for use in names]
        if isinstance(names, list | tuple | set | frozenset)
        else []
    )
    if not uses or not all(map(NAME.fullmatch, uses)):
        raise invalid(name, members, f"names no uses that are licensed: {remedy}")
    if (
        not isinstance(reference, str)
        or printable(reference.encode("utf-8", "replace")) != reference
    ):
        raise invalid(
            name,
            reference,
            f"is not a reference of at most {MAX_SHOWN} printable characters: {remedy}",
        )
    return Arrangement(host, uses=frozenset(uses), reference=reference)


def vocabulary(name: str, value: Any) -> Vocabulary:
    """Read the file of a vocabulary. Return the shipped vocabulary if the value is empty.

    PolicyError: the file cannot be read, or has a mistake."""
    path = str(value)
    if not path:
        return Vocabulary.shipped()
    try:
        return Vocabulary.from_toml(Path(path).read_text("utf-8"))
    except PolicyError as error:
        raise invalid(
            name,
            path,
            f"has a mistake: {printable(str(error).encode('utf-8', 'replace'))}",
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        cause = (
            error.strerror
            if isinstance(error, OSError) and error.strerror
            else "it is not a TOML file in UTF-8"
        )
        raise invalid(name, path, f"cannot be read: {cause}") from None


def sessions(name: str, value: Any) -> tuple[DeclaredSession, ...]:
    """Read the sessions with sites.

    `value`: the mapping `{"example.com": {"token": "env:TOKEN"}}`, or this mapping as JSON.
    PolicyError: the value is invalid. Messages never show values that may contain a credential."""
    try:
        mapping = json.loads(value.strip() or "{}") if isinstance(value, str) else value
        pairs = list(mapping.items())
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise PolicyError(
            f"{name} is not a mapping of hosts: write"
            ' {"example.com": {"token": "env:VARIABLE"}}, or this mapping as JSON'
        ) from None
    declared: dict[str, DeclaredSession] = {}
    for key, session in pairs:
        try:
            host = _host(str(key))
        except ValueError:
            raise PolicyError(
                f'{name} has a key that is not a host: write "example.com" or "example.com:8080"'
            ) from None
        if host in declared:
            raise invalid(name, host, "occurs more than once: write one session for a host")
        try:
            declared[host] = declared_session(host, session)
        except PolicyError as error:
            raise PolicyError(f"{name} `{host}`: {error}") from None
    return tuple(declared.values())


def _host(name: str, *, with_wildcard: bool = False) -> str:
    """Return the host in the form of URLs: lower case, A-labels.

    `with_wildcard`: the host may begin with "*.".
    ValueError: the text is not a host, with or without a port."""
    if with_wildcard and name.strip().startswith("*."):
        return f"*.{_host(name.strip()[2:])}"
    match = HOST.fullmatch(name.strip())
    if not match:
        raise ValueError
    host = origin_of(f"http://{match[1]}").removeprefix("http://")
    port = urlsplit(f"//{match[0]}").port
    return host.strip("[]") if port is None else f"{host}:{port}"


class _Members(list[tuple[Any, Any]]):
    """The members of a JSON object, in which a name may occur twice."""

    def items(self) -> Self:
        return self


def _pairs(text: str) -> list[tuple[Any, Any]]:
    """Return the pairs of a JSON object, or of `key:word` with commas between.

    A key may contain colons. ValueError: the text has neither form."""
    if text.lstrip().startswith("{"):
        return list(json.loads(text, object_pairs_hook=_Members))
    pairs = [pair.rpartition(":") for pair in text.split(",") if pair.strip()]
    if not all(colon for _, colon, _ in pairs):
        raise ValueError
    return [(key, word) for key, _, word in pairs]


def drafts(name: str, value: Any) -> tuple[str, ...]:
    """Read the names of the drafts for the Content-Usage field."""
    names = NAMES.parse(name, value)
    if not names or not set(names) <= set(CONTENT_USAGE):
        problem = f"names no draft: write {' or '.join(CONTENT_USAGE)}, or both"
        raise invalid(name, ",".join(names), problem)
    return names


def report_path(name: str, value: Any) -> str:
    """Read the path of a report. PolicyError: it is a URL, or has another ending."""
    path = str(value)
    if "\0" in path or "://" in path:
        problem = "is not the path of a file: write one that ends in .html, or in .json"
        raise invalid(name, path, problem)
    if path and not path.endswith(REPORT_ENDINGS):
        problem = "ends in neither .html nor .json: write `report.html` for a page"
        raise invalid(name, path, problem)
    return path
