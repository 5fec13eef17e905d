"""Registries of opt-outs: lists of domains, URLs and works that may not be used.

    registry = read_registry("list.txt", LINES, [b"example.com\\n"], lambda host: False)
    opt_outs = OptOuts((registry,))
    opt_outs.of_site("https://www.example.com")     the entries about a whole site
    opt_outs.of_targets(origin, targets)            the entries about URLs
    opt_outs.of_work(sha256)                        the entries about a work

A registry comes from the operator, and has entries about any site. docs/opt-outs.md has the forms
and the meaning of entries. A line that cannot be understood is an error, because it may refuse.

Registries may have millions of entries, so a registry does not keep their text. It keeps 16 octets
an entry: 64 bits of a hash, the number of the line, and the number of its note. A URL that is in no
registry has the hash of an entry once in 10^12 look-ups, and is then refused."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from ipaddress import IPv4Address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from comity.policies.answers.decision import Reason, Source
from comity.policies.answers.errors import PolicyError
from comity.policies.syntax.path_patterns import normal_target
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import host_names, origin_of, spellings
from comity.policies.vocabulary.table import Vocabulary

RULE = "registry.opt-out"
FORMS = LINES, CSV, TSV, JSON_LINES = ("lines", "csv", "tsv", "jsonl")
KINDS = ("domain", "url", "sha256")
NOTES = ("source", "date", "uses")
EVERY_USE = ("*", "all")
# Uses that no vocabulary has to name.
_ALWAYS_USES = ("crawl", "follow")
# Sources and dates are kept for this number of different notes. Later notes have uses alone.
MAX_NOTES = 100_000
SHELVES = 256

_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)
_PLAIN_DOMAIN = re.compile(
    r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]"
)
_NOT_OF_DOMAIN = re.compile(r"[\s/\\?#@*:]")
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")  # gzip, zip, zstd
_BETWEEN_USES = re.compile(r"[\s,;|]+")


class _Note(NamedTuple):
    uses: tuple[str, ...]
    source: str = ""
    date: str = ""


class OptOut(NamedTuple):
    """An entry of a registry that covers a site, a URL or a work.

    Attributes:
        registry: name of the file.
        sha256: hash of the file.
        line: 1-based line number.
        entry: the domain, URL or work.
        uses: the refused uses. (): every use.
        source: the source of the entry, as the registry names it. "": none.
        date: the date of the entry, as the registry writes it. "": none."""

    registry: str
    sha256: str
    line: int
    entry: str
    uses: tuple[str, ...]
    source: str
    date: str

    @property
    def reason(self) -> Reason:
        """The reason of a refusal by this entry."""
        origin = ", ".join(filter(None, (self.source, self.date)))
        text = printable(f"{self.entry} ({origin})" if origin else self.entry)
        source = Source(url=self.registry, line=self.line, text=text, sha256=self.sha256)
        return Reason(rule=RULE, source=source)

    def refuses(self, use: str, vocabulary: Vocabulary) -> bool:
        """Return True if the entry refuses the use, by its own name or by the vocabulary.

        Only its own name refuses `crawl`: a request is not a use of content (USE-14)."""
        if not self.uses or use in self.uses:
            return True
        return use != "crawl" and any(
            name in words.narrows and name in vocabulary.related(key, use).words
            for name in self.uses
            for key, words in vocabulary.words.items()
        )


class _Shelf(NamedTuple):
    """Entries whose hashes have the same first octet. They are sorted by `hashes` in the end."""

    hashes: array[int]
    lines: array[int]
    notes: array[int]

    def sorted(self) -> _Shelf:
        order = sorted(range(len(self.hashes)), key=self.hashes.__getitem__)
        return _Shelf(*(array(column.typecode, map(column.__getitem__, order)) for column in self))


class Registry:
    """A registry that was read without an error. It is immutable, and can be pickled.

    Attributes:
        name: name of the file.
        sha256: hash of the file, in hexadecimal digits.
        entries: number of entries.
        has_works: True if it has entries about works."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sha256 = ""
        self.entries = 0
        self.has_works = False
        self._depth = -1  # slashes in the path of the deepest URL; -1: there are no URLs
        self._shelves = [_Shelf(array("Q"), array("I"), array("I")) for _ in range(SHELVES)]
        self._notes: list[_Note] = []
        self._lines_of_uses: dict[str, int] = {}  # use -> the first line that names it

    def _add(self, key: str, line: int, note: int) -> None:
        number = _hash(key)
        hashes, lines, notes = self._shelves[number >> 56]
        hashes.append(number)
        lines.append(line)
        notes.append(note)
        if key.startswith("url "):
            self._depth = max(self._depth, key.partition("?")[0].count("/"))
        elif key.startswith("sha256 "):
            self.has_works = True

    def check_uses(self, vocabulary: Vocabulary) -> None:
        """Check the names of uses. PolicyError: a name is not in the vocabulary."""
        known = {word for words in vocabulary.words.values() for word in words.narrows}
        known.update(vocabulary.uses, _ALWAYS_USES)
        for use, line in self._lines_of_uses.items():
            if use not in known:
                near = next(iter(get_close_matches(use, sorted(known), 1)), "train")
                raise _error(
                    self.name,
                    line,
                    f"`{printable(use)}` is not a use: write a use such as `{near}`, or nothing for"
                    " every use",
                )

    def _find(self, key: str) -> Iterator[OptOut]:
        number = _hash(key)
        shelf = self._shelves[number >> 56]
        place = bisect_left(shelf.hashes, number)
        while place < len(shelf.hashes) and shelf.hashes[place] == number:
            note = self._notes[shelf.notes[place]]
            yield OptOut(self.name, self.sha256, shelf.lines[place], key.partition(" ")[2], *note)
            place += 1

    def of_site(self, hosts: Iterable[str]) -> Iterator[OptOut]:
        """Yield the entries about a host or a domain above it. `hosts`: names of one host."""
        for host in hosts:
            yield from self._find(f"domain {host}")
            is_address = host.rpartition(".")[2].isdigit()
            while "." in host and not is_address:
                host = host.partition(".")[2]
                yield from self._find(f"domain {host}")

    def of_target(self, host: str, target: str) -> Iterator[OptOut]:
        """Yield the entries about a URL. `host`: with its port. `target`: in normal form."""
        if self._depth < 0:
            return
        path, mark, _ = target.partition("?")
        if mark:
            yield from self._find(f"url {host}{target}")
        place = path.find("/")
        for _ in range(self._depth + 1):
            if place < 0:
                break
            yield from self._find(f"url {host}{path[:place]}")
            place = path.find("/", place + 1)
        else:
            return
        if not path.endswith("/"):
            yield from self._find(f"url {host}{path}")

    def of_work(self, sha256: str) -> Iterator[OptOut]:
        """Yield the entries about a work. `sha256`: 64 hexadecimal digits in lower case."""
        return self._find(f"sha256 {sha256}")


class OptOuts:
    """All registries of an operator. It is immutable, and false without registries."""

    def __init__(self, registries: Iterable[Registry] = ()) -> None:
        """PolicyError: two registries have one name, so reasons could not tell them apart."""
        self.registries = tuple(registries)
        names = [registry.name for registry in self.registries]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise PolicyError(f"two registries are called `{twice}`: give one another name")
        self.has_works = any(registry.has_works for registry in self.registries)

    @cached_property
    def _identity(self) -> tuple[tuple[str, str], ...]:
        return tuple((registry.name, registry.sha256) for registry in self.registries)

    def __bool__(self) -> bool:
        return bool(self.registries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OptOuts) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def of_site(self, origin: str) -> tuple[OptOut, ...]:
        """Return the entries about the host of an origin, or a domain above it."""
        if not self.registries:
            return ()
        hosts = _hosts(origin)
        return tuple(found for registry in self.registries for found in registry.of_site(hosts))

    def of_targets(self, origin: str, targets: Sequence[str]) -> tuple[OptOut, ...]:
        """Return the entries about a URL. `targets`: its path and query in all spellings."""
        if not self.registries:
            return ()
        port = _port(origin)
        found = (
            opt_out
            for registry in self.registries
            for host in _hosts(origin)
            for target in dict.fromkeys(map(normal_target, targets))
            for opt_out in registry.of_target(host + port, target)
        )
        return tuple(dict.fromkeys(found))

    def of_work(self, sha256: str) -> tuple[OptOut, ...]:
        """Return the entries about a work. `sha256`: in hexadecimal digits. "": it is unknown."""
        if not (self.has_works and sha256):
            return ()
        return tuple(
            found for registry in self.registries for found in registry.of_work(sha256.lower())
        )


NO_OPT_OUTS = OptOuts()


def _hash(key: str) -> int:
    octets = key.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(octets, digest_size=8).digest())


def _hosts(origin: str) -> tuple[str, ...]:
    """Return the names of an origin's host, without a dot at the end."""
    host = origin.partition("://")[2].removesuffix(_port(origin))
    return host_names(host.rstrip("."))


def _port(origin: str) -> str:
    """Return a colon and the port of an origin; "": the port is that of its scheme."""
    port = origin.rpartition(":")[2]
    return f":{port}" if port.isdigit() else ""


# Reading


def read_registry(
    name: str, form: str, lines: Iterable[bytes], is_public_suffix: Callable[[str], bool]
) -> Registry:
    """Read a registry.

    Args:
        name: name of the file.
        form: one of FORMS.
        lines: lines of the file, with their ends.
        is_public_suffix: tells whether sites of many owners are directly below a domain.

    PolicyError: the file has no entry, or a line cannot be understood. The message has the line,
    and what to write instead."""
    registry, digest = Registry(name), hashlib.sha256()
    notes = _Notes()
    for number, members in _READERS[form](name, _texts(name, lines, digest.update)):
        note = notes.number_of(members, number)
        try:
            for key in _keys(members, is_public_suffix):
                registry._add(key, number, note)
        except ValueError as error:
            raise _error(name, number, str(error)) from None
        registry.entries += 1
    if not registry.entries:
        raise PolicyError(f"registry `{name}` has no entries: name another file, or leave it out")
    registry._shelves = [shelf.sorted() for shelf in registry._shelves]
    registry._notes, registry._lines_of_uses = list(notes.notes), notes.lines_of_uses
    registry.sha256 = digest.hexdigest()
    return registry


def _error(name: str, line: int, problem: str) -> PolicyError:
    return PolicyError(f"registry `{name}`, line {line}: {problem}")


Members = Mapping[str, str]  # some of KINDS and NOTES, with texts that are not empty
_Texts = Iterator[tuple[int, str]]  # number and text of each line


def _texts(name: str, lines: Iterable[bytes], update: Callable[[bytes], object]) -> _Texts:
    for number, line in enumerate(lines, 1):
        update(line)
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            remedy = "unpack it first" if line.startswith(_PACKED) else "save it as UTF-8"
            raise _error(name, number, f"it is not UTF-8: {remedy}") from None
        yield number, text.removeprefix("\ufeff") if number == 1 else text


def _read_lines(name: str, texts: _Texts) -> Iterator[tuple[int, Members]]:
    for number, line in texts:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        is_work = len(text) >= 64 and _SHA256.fullmatch(text)
        kind = "sha256" if is_work else "url" if "://" in text else "domain"
        yield number, {kind: text}


def _read_rows(name: str, texts: _Texts, delimiter: str) -> Iterator[tuple[int, Members]]:
    last = 0  # number of the last line that was read

    def read() -> Iterator[str]:
        nonlocal last
        for number, text in texts:
            last = number
            yield text

    rows, columns = csv.reader(read(), delimiter=delimiter, strict=True), None
    remedy = "put fields with commas or quotes into double quotes"
    try:
        for row in rows:
            if not any(map(str.strip, row)):
                continue
            if any("\n" in field for field in row):  # a missing quote would hide entries
                raise _error(name, last, "a field in quotes has a line break: close the quotes")
            if columns is None:
                columns = _columns(name, last, row)
            elif len(row) != len(columns):
                problem = f"it has {len(row)} fields, and the first line {len(columns)}"
                raise _error(name, last, f"{problem}: {remedy}")
            else:
                yield last, _members(name, last, zip(columns, row, strict=True))
    except csv.Error as error:
        raise _error(name, last, f"it is not CSV ({error}): {remedy}") from None


def _columns(name: str, line: int, row: Sequence[str]) -> list[str]:
    """Return the names of columns, in lower case."""
    columns = [column.strip().lower() for column in row]
    if twice := next((column for column in columns if columns.count(column) > 1), ""):
        problem = f"the column `{printable(twice)}` occurs twice: rename one"
        raise _error(name, line, problem)
    if not set(KINDS) & set(columns):
        problem = "it names no column domain, url or sha256: write `domain,source,date`"
        raise _error(name, line, f"{problem}, or call the file .txt if it has one entry a line")
    return columns


def _read_objects(name: str, texts: _Texts) -> Iterator[tuple[int, Members]]:
    remedy = 'write {"domain": "example.com", "source": "...", "date": "2026-11-01"}'
    for number, line in texts:
        if not line.strip():
            continue
        try:
            pairs = json.loads(line, object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            raise _error(name, number, f"it is not JSON: {remedy}") from None
        if not isinstance(pairs, _Pairs):
            raise _error(name, number, f"it is not a JSON object: {remedy}")
        names = [key.lower() for key, _ in pairs]
        if twice := next((key for key in names if names.count(key) > 1), ""):
            raise _error(name, number, f"it has `{printable(twice)}` twice: write it once")
        yield number, _members(name, number, ((key.lower(), value) for key, value in pairs))


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, in which a name may occur twice."""


def _members(name: str, line: int, pairs: Iterable[tuple[str, Any]]) -> Members:
    """Return the members that a registry may have. Others are for other readers."""
    members = {}
    for key, value in pairs:
        if key not in (*KINDS, *NOTES) or value is None:
            continue
        if key == "uses" and isinstance(value, list) and all(isinstance(use, str) for use in value):
            value = " ".join(value)
        if not isinstance(value, str):
            raise _error(name, line, f"`{key}` is not a text: put it into double quotes")
        if value.strip():
            members[key] = value.strip()
    if not any(kind in members for kind in KINDS):
        raise _error(name, line, "it has no domain, url or sha256: write one, or delete the line")
    return members


_READERS: dict[str, Callable[[str, _Texts], Iterator[tuple[int, Members]]]] = {
    LINES: _read_lines,
    CSV: lambda name, texts: _read_rows(name, texts, ","),
    TSV: lambda name, texts: _read_rows(name, texts, "\t"),
    JSON_LINES: _read_objects,
}


class _Notes:
    """The different notes of a registry, each once.

    Attributes:
        notes: note -> its number.
        lines_of_uses: use -> the first line that names it."""

    def __init__(self) -> None:
        self.notes: dict[_Note, int] = {}
        self.lines_of_uses: dict[str, int] = {}
        self._last: tuple[str | None, ...] = ()  # most lines have the note of the line before
        self._number = 0

    def number_of(self, members: Members, line: int) -> int:
        """Return the number of an entry's note. `line`: the line of the entry."""
        written = tuple(map(members.get, NOTES))
        if written != self._last:
            self._last, note = written, _note(members)
            if len(self.notes) >= MAX_NOTES and note not in self.notes:
                note = _Note(note.uses)
            self._number = self.notes.setdefault(note, len(self.notes))
            for use in note.uses:
                self.lines_of_uses.setdefault(use, line)
        return self._number


def _note(members: Members) -> _Note:
    names = filter(None, _BETWEEN_USES.split(members.get("uses", "").lower()))
    uses = tuple(sorted(set(names)))
    if not set(uses).isdisjoint(EVERY_USE):
        uses = ()
    source, date = members.get("source", ""), members.get("date", "")
    return _Note(uses, printable(source), printable(date))


def _keys(members: Members, is_public_suffix: Callable[[str], bool]) -> Iterator[str]:
    """Yield the keys of an entry. ValueError: it cannot be understood."""
    if "domain" in members:
        yield f"domain {_domain(members['domain'], is_public_suffix)}"
    if "url" in members:
        yield from (f"url {key}" for key in _url(members["url"]))
    if "sha256" in members:
        match = _SHA256.fullmatch(members["sha256"])
        if match is None:
            text = printable(members["sha256"])
            raise ValueError(f"`{text}` is not a SHA-256: write its 64 hexadecimal digits")
        yield f"sha256 {match[1].lower()}"


def _domain(text: str, is_public_suffix: Callable[[str], bool]) -> str:
    """Return a domain in A-labels. ValueError: the text is not a domain that can be refused."""
    name = text.lower().removesuffix(".")
    if not _PLAIN_DOMAIN.fullmatch(name) and not is_public_suffix(name):
        name = _unusual_domain(text)
    if is_public_suffix(name):
        raise ValueError(
            f"`{printable(text)}` is a public suffix, below which sites have many owners:"
            f" write the domain of each site, such as example.{name}"
        )
    return name


def _unusual_domain(text: str) -> str:
    """Return a domain in other letters, or an IP address."""
    shown = printable(text)
    if "/" in text:
        raise ValueError(f"`{shown}` is not a domain: write https://{shown.lstrip('/')} as a URL")
    if text.startswith("*."):
        raise ValueError(f"`{shown}` is not a domain: write {shown[2:]}, which covers those below")
    is_ipv6 = text.startswith("[") and text.endswith("]")
    try:
        if not is_ipv6 and _NOT_OF_DOMAIN.search(text):
            raise ValueError
        name = origin_of(f"http://{text}").removeprefix("http://").removesuffix(".")
        if not is_ipv6 and name.rpartition(".")[2].isdigit():
            name = str(IPv4Address(name))
        elif not is_ipv6 and name != "localhost" and not _PLAIN_DOMAIN.fullmatch(name):
            raise ValueError
    except ValueError:
        remedy = "write a domain such as example.com, a URL, or a SHA-256"
        raise ValueError(f"`{shown}` is not a domain: {remedy}") from None
    return name


def _url(text: str) -> Iterator[str]:
    """Yield host, port and path of a URL, in each of its spellings.

    ValueError: the text is not an http or https URL."""
    shown = printable(text)
    try:
        origin = origin_of(text)
    except ValueError:
        raise ValueError(f"`{shown}` is not a URL: write https://example.com/path") from None
    if "@" in urlsplit(text).netloc:
        raise ValueError(f"`{shown}` has a user name: write the URL without it")
    if "*" in origin or text.endswith("*"):
        remedy = "write the URL of a folder, which covers all URLs below it"
        raise ValueError(f"`{shown}` has a wildcard: {remedy}, or a domain")
    host = _hosts(origin)[0] + _port(origin)
    for target in dict.fromkeys(map(normal_target, spellings(text))):
        yield host + (target if "?" in target else target.rstrip("/"))
