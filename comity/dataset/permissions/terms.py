"""May a record be used in these ways, now, and which of it?

    apply_terms(record, terms) -> TermsApplied      the record as it may be used, or why not
A tag that cannot be understood permits nothing, and neither does one that does not list the use. Readings: docs/datasets.md."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self

from comity.dataset.permissions.expiry import (
    EXPIRED,
    NEVER_RECRAWLED,
    SUPERSEDED,
    UNDATED,
    UNKNOWN_RECRAWLED,
    Recrawled,
    ended,
)
from comity.dataset.permissions.lengths import beyond, content, fits
from comity.dataset.records import ATTRIBUTION, INSTEAD, LICENSE, DatasetError, Record
from comity.dataset.tags.sources import GUESSED, RawTag, TagSource
from comity.policies.answers.decision import UseDecision, Verdict
from comity.policies.answers.qualifiers import MODIFIABLE
from comity.policies.answers.rule import RULES
from comity.policies.document.nofollow import canonical
from comity.policies.elements.coverage import refuses
from comity.policies.elements.spans import Cut, Removals, is_empty, removals
from comity.policies.tag import (
    FREE,
    RESOURCES,
    USE_NAME,
    Element,
    Span,
    Tag,
    TagError,
    Use,
    read_tag,
    without_extracts,
)
from comity.policies.vocabulary.table import Vocabulary

# Of the most recent fetch, by what they mean (ACAP 1.0 section-2.5.5.1).
CURRENT = frozenset(("present-currentcopy", "present-snippet", "present-thumbnail"))
_OF_ITEM = ("urls", "more_urls", "names")  # what a tag says of an element besides its spans
_WEB = ("http://", "https://")
_FILES = (
    "files",
    "images",
)  # in which Scrapy's media pipelines say what they have stored, where no setting names other fields
_OF_FILE = frozenset(("url", "path", "checksum"))  # what they say of each
_CLIP = frozenset(
    ("clip", "*")
)  # "the entire original length must be preserved" (ai.txt paper section-3.3)
DEFAULT = "comity.default"  # rule of the reasons that the operator's defaults give
ARRANGEMENT = (
    "comity.arrangement"  # rule of the reasons that an arrangement of the operator's gives
)
LICENSES = tuple(
    name for name, rule in RULES.items() if rule.names_licence
)  # rules of the reasons that name one


class Terms(NamedTuple):
    """The terms of a use: what a record is wanted for, and when. It can be pickled."""

    uses: tuple[str, ...]  # lower case; all of them have to be permitted
    now: datetime  # aware
    vocabulary: Vocabulary
    recrawled: Recrawled = (
        NEVER_RECRAWLED  # which pages were fetched again, for permissions that end then
    )
    tags: TagSource = GUESSED
    defaults: Mapping[
        str, Verdict
    ] = {}  # for uses of which nobody speaks, in the place of what held for them in the crawl
    last_fetch: bool = False  # of a page that was fetched several times, only the records of the last fetch come out

    @classmethod
    def of(
        cls,
        uses: Iterable[str],
        *,
        now: datetime | None = None,
        vocabulary: Vocabulary | None = None,
        recrawled: Recrawled = NEVER_RECRAWLED,
        tags: TagSource = GUESSED,
        defaults: Mapping[str, Verdict] | None = None,
        last_fetch: bool = False,
    ) -> Self:
        """Return the terms of these uses. DatasetError where a use cannot be one, or there is none."""
        names = tuple(dict.fromkeys(use.strip().lower() for use in uses))
        for name in names or ("",):
            if not USE_NAME.fullmatch(name):
                raise DatasetError(f"`{name}` is no name of a use: write, for example, train,index")
        words = vocabulary or Vocabulary.shipped()
        return cls(
            names, now or datetime.now(UTC), words, recrawled, tags, defaults or {}, last_fetch
        )

    @property
    def modifications(self) -> dict[str, frozenset[str]]:
        """The uses that are modifications, each with those of which one prohibits it."""
        return {
            use: modifications
            for use in self.uses
            if (modifications := self.vocabulary.modifications(use))
        }

    def by_single_records(self, recrawled: Recrawled | None) -> Self:
        """The terms where records come one by one, in machinery of others. `recrawled`: of all of them; None: nobody knows, and
        what is permitted until its page is fetched again is refused.

        DatasetError where the last fetch of a page counts, by `last_fetch` or by a use, and nobody knows which that is."""
        if recrawled is None and self.last_fetch:
            raise DatasetError(
                "the last fetch of each page is asked for: say which that is, by recrawled_in()"
            )
        if recrawled is None and (current := CURRENT.intersection(self.uses)):
            raise DatasetError(
                f"{min(current)} is of the most recent fetch of a page: say which that is, by recrawled_in()"
            )
        return self._replace(recrawled=UNKNOWN_RECRAWLED if recrawled is None else recrawled)


class TermsApplied(NamedTuple):
    """One record under the terms."""

    record: Record | None  # a copy where it differs; None: it may not be used
    cause: str = ""  # "" where it may; else one of those that docs/datasets.md lists: "no-tag", "deny:RULE", "expired:USE", ...
    reasons: tuple[dict[str, Any], ...] = ()  # the statements that refuse, as the tag has them
    tag: RawTag | None = None  # that of the record that comes out


class _RefusedError(Exception):
    """The record may not be used."""

    def __init__(self, cause: str, reasons: tuple[dict[str, Any], ...] = ()) -> None:
        super().__init__(cause)
        self.cause = cause
        self.reasons = reasons


def apply_terms(record: Record, terms: Terms) -> TermsApplied:
    """Tell if each of the uses is permitted, and give the record without what is not."""
    try:
        raw_tag = terms.tags.find(record)
        tag = read_tag(raw_tag.raw)
        if terms.defaults:
            tag = _by_defaults(tag, terms.defaults)
        uses = _permitted(record, tag, terms)
        return _usable(record, raw_tag, tag, uses, terms)
    except TagError as error:
        return TermsApplied(None, str(error))
    except _RefusedError as refused:
        return TermsApplied(None, refused.cause, refused.reasons)


# The uses as a whole


def _by_defaults(tag: Tag, defaults: Mapping[str, Verdict]) -> Tag:
    """The tag as it would be had these been the operator's defaults: what somebody has said stays as it is."""
    changed = [
        name for name in defaults if name in tag.uses and _is_silent(tag, name, defaults[name])
    ]
    if not changed:
        return tag
    raw = tag.raw | {"uses": dict(tag.raw["uses"]), "reasons": [*tag.raw["reasons"]]}
    for name in changed:
        spec = tag.reasons_of(tag.uses[name])[0]["spec"]
        text = f"{name}: {defaults[name].value}"
        raw["reasons"].append(
            {
                "rule": DEFAULT,
                "spec": spec,
                "url": "--default",
                "part": "setting",
                "line": 0,
                "text": text,
            }
        )
        use = raw["uses"][name]
        indices = [len(raw["reasons"]) - 1, *use["because"][1:]]  # the rest limits it
        raw["uses"][name] = use | {"verdict": defaults[name].value, "because": indices}
    return read_tag(raw)


def _is_silent(tag: Tag, name: str, default: Verdict) -> bool:
    """Return whether nobody spoke of the use, and another default decided."""
    reason = tag.reasons_of(tag.uses[name])[0]
    is_by_setting = reason["rule"] == DEFAULT and reason.get("part") == "setting"
    return (
        is_by_setting
        and not tag.raw["uses"][name]["stated"]
        and tag.uses[name].is_allowed is not (default is Verdict.ALLOW)
    )


def _permitted(record: Record, tag: Tag, terms: Terms) -> list[Use]:
    if terms.last_fetch and terms.recrawled.supersedes(record):
        raise _RefusedError(SUPERSEDED)
    uses: list[Use] = []
    for name in terms.uses:
        use = tag.uses.get(name)
        if use is None:
            raise _RefusedError(f"not-listed:{name}")
        if not use.is_allowed:
            reasons = tag.reasons_of(use)
            raise _RefusedError(f"deny:{reasons[0]['rule']}", reasons)
        if name in CURRENT and terms.recrawled.supersedes(record):
            raise _RefusedError(f"{SUPERSEDED}:{name}")
        if name in CURRENT and terms.recrawled.may_supersede(record):
            raise _RefusedError(f"{UNDATED}:{name}")
        cause = ended(use, record, terms.now, terms.recrawled)
        if cause:
            raise _RefusedError(f"{cause}:{name}", tag.reasons_of(use))
        uses.append(use)
    # What may be kept no longer is there no longer, whatever it may be used for.
    preserve = tag.uses["preserve"]
    cause = ended(preserve, record, terms.now, terms.recrawled) if preserve.is_allowed else ""
    if cause in (EXPIRED, SUPERSEDED):
        raise _RefusedError(f"{cause}:preserve", tag.reasons_of(preserve))
    for name, modifications in terms.modifications.items():
        prohibiting = [
            use
            for other in (name, *MODIFIABLE)
            if (use := tag.uses.get(other)) and _prohibits(use, modifications)
        ]
        if prohibiting and not _is_licensed(tag, name):
            raise _RefusedError(f"modification:{name}", tag.reasons_of(prohibiting[0]))
    return uses


def _is_licensed(tag: Tag, use: str) -> bool:
    """Return whether the use is arranged: an arrangement comes before all statements of the site."""
    return any(reason["rule"] == ARRANGEMENT for reason in tag.reasons_of(tag.uses[use]))


def _prohibits(use: Use, modifications: frozenset[str]) -> bool:
    """Return whether the permission prohibits one of the modifications."""
    return use.is_allowed and not modifications.isdisjoint(use.qualifiers.prohibited_modifications)


# What of the record


def _usable(
    record: Record, raw_tag: RawTag, tag: Tag, uses: list[Use], terms: Terms
) -> TermsApplied:
    """The record without what is refused or too much, and with what has to be shown."""
    usable = _Usable(record, raw_tag, tag, uses, terms)
    if tag.elements:
        usable.cut_elements()
    if tag.embedded:
        usable.cut_files()
    if any(use.qualifiers is not FREE for use in uses):
        usable.use_instead()
        usable.attribute()
    usable.license()
    usable.cut_length()
    return usable.result()


class _Usable:
    """A record on its way. What cannot be done without breaking another of its terms raises _RefusedError."""

    def __init__(
        self, record: Record, raw_tag: RawTag, tag: Tag, uses: list[Use], terms: Terms
    ) -> None:
        self.record = record  # its tag stands in it as it was
        self._added: Record = {}  # fields that take the place of those with the same names: an earlier export may have added them
        self._raw_tag = raw_tag
        self._tag = tag
        self._raw = tag.raw  # as it is to be
        self._uses = uses
        self._terms = terms
        self._chars = [
            use.qualifiers.max_chars for use in uses if use.qualifiers.max_chars is not None
        ]
        self._words = [
            use.qualifiers.max_words for use in uses if use.qualifiers.max_words is not None
        ]
        self._is_limited = bool(self._chars or self._words)

    def result(self) -> TermsApplied:
        """The record with its tag."""
        raw_tag = self._raw_tag._replace(raw=self._raw)
        record = self.record | self._added if self._added else self.record
        if self._raw is record.get(raw_tag.field):
            return TermsApplied(record, tag=raw_tag)
        return TermsApplied(raw_tag.put(record, self._raw), tag=raw_tag)

    @property
    def _fields(self) -> Record:
        """The fields of the record that stay, besides its tag."""
        others = (self._raw_tag.field, *self._added)
        return {field: value for field, value in self.record.items() if field not in others}

    def cut_elements(self) -> None:
        """Elements on which one of the uses is refused."""
        names, vocabulary = (
            tuple(name for name in self._terms.uses if not _is_licensed(self._tag, name)),
            self._terms.vocabulary,
        )
        refused = {
            number: element
            for number, element in enumerate(self._tag.elements)
            if _refuses(element.deny, names, vocabulary)
        }
        if not refused:
            return
        for element in refused.values():
            if element.is_whole:
                reasons = self._tag.reasons_of(element)
                raise _RefusedError(f"deny:{reasons[0]['rule']}", reasons)
        self._doubt_extracts()
        spans = [
            *(span for element in refused.values() for span in element.spans),
            *self._stored(refused.values()),
        ]
        removed_names = frozenset(
            name
            for element in refused.values()
            for name in element.names
            if name != self._raw_tag.field
        )
        self._remove(removals(self.record, spans), without=refused, removed_names=removed_names)

    def _stored(self, elements: Collection[Element]) -> Iterator[Span]:
        """Yield what media pipelines say of files with the URLs of these elements, those of the item that go with them among
        them: that was written after the tag.

        Where one has more URLs than the tag tells, a file that the record names nowhere else may have one of them."""
        stored = {
            field: files
            for field in self._file_fields
            if isinstance(files := self.record.get(field), list) and files
        }
        if not stored:
            return
        texts = (self._text_at(span) for element in elements for span in element.spans)
        urls = {_compared(url) for element in elements for url in element.urls}.union(
            _urls_in(texts)
        )
        more_urls = any(element.more_urls for element in elements)
        if not (urls or more_urls):
            return
        for field, files in stored.items():
            for number, file in enumerate(files):
                url = (
                    _compared(file["url"])
                    if isinstance(file, dict) and isinstance(file.get("url"), str)
                    else None
                )
                if url is None or url in urls or (more_urls and url not in self._mentioned_urls):
                    yield [field, number]

    def _text_at(self, span: Span) -> str:
        """Return the text that is a field, or a member of a list, that a span covers; "" where it covers something else."""
        value = self.record.get(span[0])
        if len(span) == 2 and isinstance(value, list) and span[1] < len(value):
            value = value[span[1]]
        return value if isinstance(value, str) and len(span) < 3 else ""

    @cached_property
    def _file_fields(self) -> tuple[str, ...]:
        """The fields in which media pipelines say what they have stored."""
        others = (
            field
            for field, value in self._fields.items()
            if isinstance(value, list) and any(map(_is_file, value))
        )
        return tuple(dict.fromkeys((*_FILES, *others)))

    @cached_property
    def _mentioned_urls(self) -> frozenset[str]:
        """The texts in the record that may be URLs, but for what media pipelines say."""
        return frozenset(
            _urls_in(
                value for field, value in self._fields.items() if field not in self._file_fields
            )
        )

    def _doubt_extracts(self) -> None:
        """A permission that asks for an element of the page cannot be used."""
        doubtful = without_extracts(self._raw)
        for name in self._terms.uses:
            use = doubtful["uses"][name]
            if use != self._raw["uses"][name]:
                rule = doubtful["reasons"][use["because"][0]]["rule"]
                raise _RefusedError(f"deny:{rule}", self._tag.reasons_of(self._tag.uses[name]))
        self._raw = doubtful

    def cut_files(self) -> None:
        """Remove what media pipelines say of embedded files that one of the uses does not cover."""
        for name in self._terms.uses:
            use = self._tag.embedded.get(name)
            if use and (
                not use.is_allowed
                or ended(use, self.record, self._terms.now, self._terms.recrawled)
            ):
                self._remove(
                    {
                        field: None
                        for field in self._file_fields
                        if not is_empty(self.record.get(field))
                    }
                )

    def use_instead(self) -> None:
        """Nothing but the resources that are to be used instead of the page (ACAP 1.0 section-2.5.3.2)."""
        alternatives = [use.qualifiers.must_use for use in self._uses if use.qualifiers.must_use]
        if not alternatives:
            return
        common = [*dict.fromkeys(alternatives[0])]
        for other in map(frozenset, alternatives):
            common = [resource for resource in common if resource in other]
        if len(alternatives) < len(
            self._uses
        ):  # a use that may have the page may have a part of it, and no other resource
            common = [resource for resource in common if resource.extract]
        if not common:
            raise _RefusedError("must-use")
        self._added[INSTEAD] = RESOURCES.write(common)
        self._remove(dict.fromkeys(content(self._fields)))

    def cut_length(self) -> None:
        """Text beyond the lengths that are permitted (ACAP 1.0 section-2.5.5.2.3)."""
        if not self._is_limited:
            return
        chars, words = min(self._chars, default=None), min(self._words, default=None)
        limit = UseDecision(
            verdict=Verdict.ALLOW, stated=True, reasons=(), max_chars=chars, max_words=words
        )
        if any(use.qualifiers.must_use for use in self._uses):
            if not fits((resource["content"] for resource in self._added[INSTEAD]), limit):
                raise _RefusedError("max-length")
        else:
            self._remove(beyond(self._fields, limit))

    def attribute(self) -> None:
        """Add what is to be shown with it (ACAP 1.0 section-2.5.5.2.5)."""
        included = dict.fromkeys(
            resource for use in self._uses for resource in use.qualifiers.must_include
        )
        if included:
            self._added[ATTRIBUTION] = RESOURCES.write(included)

    def license(self) -> None:
        """The RSL documents by which the uses are permitted, and the operator's own licences."""
        references: dict[str, None] = {}
        for reason in (reason for use in self._uses for reason in self._tag.reasons_of(use)):
            if reason["rule"] in LICENSES:
                references[
                    _reference(reason) if reason["rule"] == ARRANGEMENT else reason["url"]
                ] = None
        references.pop("", None)
        if references:
            self._added[LICENSE] = list(references)

    def _remove(
        self,
        removed: Removals,
        *,
        without: Collection[int] = (),
        removed_names: frozenset[str] = frozenset(),
    ) -> None:
        """Cut the record.

        `without`: numbers of elements of which nothing is left. `removed_names`: of fields that go with their names."""
        removed = {field: ranges for field, ranges in removed.items() if ranges != []}
        is_changed = bool(removed or removed_names)
        if is_changed and any(
            "any" in use.qualifiers.prohibited_modifications and not use.qualifiers.must_use
            for use in self._uses
        ):
            raise _RefusedError("modified")
        if not removed and not without:
            return
        cut = Cut(self.record, removed, removed_names)
        elements = []
        for number, element in enumerate(self._raw["elements"]):
            if number in without:
                elements.append(
                    {key: value for key, value in element.items() if key not in _OF_ITEM}
                    | {"spans": []}
                )
                continue
            if (
                is_changed
                and self._keeps_length(element)
                and ("whole" in element or cut.shortens(element["spans"]))
            ):
                raise _RefusedError("clip", self._tag.reasons_of(self._tag.elements[number]))
            remaining = element | {"spans": cut.moved(element["spans"])}
            if not removed_names.isdisjoint(element.get("names", ())):
                remaining["names"] = [
                    name for name in element["names"] if name not in removed_names
                ]
            elements.append(remaining)
        self.record = cut.fields
        self._raw = self._raw | {"elements": elements}

    def _keeps_length(self, element: dict[str, Any]) -> bool:
        """Return whether the element may be left out of what is shown, and not be shown shortened."""
        return not _CLIP.isdisjoint(element["deny"]) and (
            self._is_limited or any(map(_shows, self._terms.uses))
        )


def _is_file(value: Any) -> bool:
    """Return whether a value is what a media pipeline says of a file."""
    return isinstance(value, dict) and value.keys() >= _OF_FILE


def _reference(reason: Mapping[str, Any]) -> str:
    """The reference of an arrangement: `HOST: USE, REFERENCE`. "": it has none."""
    _, _, reference = reason["text"].partition(": ")[2].partition(",")
    return str(reference.strip())


@lru_cache(maxsize=4096)
def _compared(url: str) -> str:
    """Return one of the many spellings of a URL: Scrapy escapes what it asks for."""
    try:
        return canonical(url.strip())
    except ValueError:
        return url


def _urls_in(values: Iterable[Any]) -> Iterator[str]:
    """Yield the texts in values that may be URLs, as they are compared."""
    stack = [*values]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if value.strip().startswith(_WEB):
                yield _compared(value)
        elif isinstance(value, dict | list | tuple):
            stack += value.values() if isinstance(value, dict) else value


def _shows(use: str) -> bool:
    return use in ("present", "return", "clip") or use.startswith("present-")


@lru_cache(maxsize=4096)
def _refuses(deny: frozenset[str], uses: tuple[str, ...], vocabulary: Vocabulary) -> bool:
    """Return whether an element on which these actions are prohibited may not be used in one of the ways."""
    return any(refuses(deny, use, vocabulary) for use in uses)
