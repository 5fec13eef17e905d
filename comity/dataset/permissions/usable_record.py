"""A record that is made usable: refused and excessive parts are cut, required parts are added."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

from comity.dataset.permissions.expiry import cause_of_end
from comity.dataset.permissions.lengths import beyond, content, fits
from comity.dataset.permissions.terms import (
    ARRANGEMENT,
    LICENSES,
    RefusedError,
    Terms,
    TermsApplied,
    is_licensed,
)
from comity.dataset.records import ATTRIBUTION, INSTEAD, LICENSE, Record
from comity.dataset.tags.sources import RawTag
from comity.policies.answers.decision import UseDecision, Verdict
from comity.policies.document.nofollow import canonical
from comity.policies.elements.coverage import refuses
from comity.policies.elements.spans import Cut, Removals, is_empty, removals
from comity.policies.tag import RESOURCES, Span, Tag, TaggedElement, Use, without_extracts
from comity.policies.vocabulary.table import Vocabulary

_OF_ITEM = ("urls", "more_urls", "names")  # members of an element in a tag, besides its spans
_WEB = ("http://", "https://")
# Fields in which Scrapy's media pipelines list the stored files, unless a setting names others.
_FILES = ("files", "images")
_OF_FILE = frozenset(("url", "path", "checksum"))  # members of a file in these lists
# "the entire original length must be preserved" (ai.txt paper section-3.3)
_CLIP = frozenset(("clip", "*"))


class UsableRecord:
    """A record that is made usable step by step.

    A step raises RefusedError if its change of the record is prohibited."""

    def __init__(
        self, record: Record, raw_tag: RawTag, tag: Tag, uses: list[Use], terms: Terms
    ) -> None:
        self.record = record  # still with its old tag
        # Fields to add. They replace the fields with the same names of an earlier export.
        self._added: Record = {}
        self._raw_tag = raw_tag
        self._tag = tag
        self._raw = tag.raw  # the new tag
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
        """Return the record with its additions and its new tag."""
        raw_tag = self._raw_tag._replace(raw=self._raw)
        record = self.record | self._added if self._added else self.record
        if self._raw is record.get(raw_tag.field):
            return TermsApplied(record, tag=raw_tag)
        return TermsApplied(raw_tag.put(record, self._raw), tag=raw_tag)

    @property
    def _fields(self) -> Record:
        """The fields of the record besides its tag and the fields to replace."""
        others = (self._raw_tag.field, *self._added)
        return {field: value for field, value in self.record.items() if field not in others}

    def cut_elements(self) -> None:
        """Cut the elements for which one of the uses is refused."""
        names, vocabulary = (
            tuple(name for name in self._terms.uses if not is_licensed(self._tag, name)),
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
                raise RefusedError(f"deny:{reasons[0]['rule']}", reasons)
        self._doubt_extracts()
        spans = [
            *(span for element in refused.values() for span in element.spans),
            *self._stored_files(refused.values()),
        ]
        removed_names = frozenset(
            name
            for element in refused.values()
            for name in element.names
            if name != self._raw_tag.field
        )
        self._remove(removals(self.record, spans), without=refused, removed_names=removed_names)

    def _stored_files(self, elements: Collection[TaggedElement]) -> Iterator[Span]:
        """Yield the spans of the files that media pipelines have stored for these elements.

        Media pipelines list files after the tag is written, so the tag has no spans of files. A
        file belongs to the elements if its URL is one of their URLs. If an element has more URLs
        than the tag lists, a file also belongs to it if the file's URL is nowhere else in the
        record."""
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
        """Return the text that a span covers, if it is a whole field or a whole list member.

        "" if it is a part of a text."""
        value = self.record.get(span[0])
        if len(span) == 2 and isinstance(value, list) and span[1] < len(value):
            value = value[span[1]]
        return value if isinstance(value, str) and len(span) < 3 else ""

    @cached_property
    def _file_fields(self) -> tuple[str, ...]:
        """The fields in which media pipelines list stored files."""
        others = (
            field
            for field, value in self._fields.items()
            if isinstance(value, list) and any(map(_is_file, value))
        )
        return tuple(dict.fromkeys((*_FILES, *others)))

    @cached_property
    def _mentioned_urls(self) -> frozenset[str]:
        """The texts in the record that may be URLs, outside the lists of stored files."""
        return frozenset(
            _urls_in(
                value for field, value in self._fields.items() if field not in self._file_fields
            )
        )

    def _doubt_extracts(self) -> None:
        """Check permissions that require an extract of the page, because elements are cut out.

        RefusedError: a requested use has such a permission."""
        doubtful = without_extracts(self._raw)
        for name in self._terms.uses:
            use = doubtful["uses"][name]
            if use != self._raw["uses"][name]:
                rule = doubtful["reasons"][use["because"][0]]["rule"]
                raise RefusedError(f"deny:{rule}", self._tag.reasons_of(self._tag.uses[name]))
        self._raw = doubtful

    def cut_files(self) -> None:
        """Remove the lists of stored files if one of the uses does not cover embedded files."""
        for name in self._terms.uses:
            use = self._tag.embedded.get(name)
            if use and (
                not use.is_allowed
                or cause_of_end(use, self.record, self._terms.now, self._terms.recrawled)
            ):
                self._remove(
                    {
                        field: None
                        for field in self._file_fields
                        if not is_empty(self.record.get(field))
                    }
                )

    def use_instead(self) -> None:
        """Replace the content by the resources to use instead (ACAP 1.0 section-2.5.3.2)."""
        alternatives = [use.qualifiers.must_use for use in self._uses if use.qualifiers.must_use]
        if not alternatives:
            return
        common = [*dict.fromkeys(alternatives[0])]
        for other in map(frozenset, alternatives):
            common = [resource for resource in common if resource in other]
        # A use without such resources may use the page, so it may use extracts of the page, but no
        # other resource.
        if len(alternatives) < len(self._uses):
            common = [resource for resource in common if resource.extract]
        if not common:
            raise RefusedError("must-use")
        self._added[INSTEAD] = RESOURCES.write(common)
        self._remove(dict.fromkeys(content(self._fields)))

    def cut_length(self) -> None:
        """Cut the text to the permitted length (ACAP 1.0 section-2.5.5.2.3)."""
        if not self._is_limited:
            return
        chars, words = min(self._chars, default=None), min(self._words, default=None)
        limit = UseDecision(
            verdict=Verdict.ALLOW, stated=True, reasons=(), max_chars=chars, max_words=words
        )
        if any(use.qualifiers.must_use for use in self._uses):
            if not fits((resource["content"] for resource in self._added[INSTEAD]), limit):
                raise RefusedError("max-length")
        else:
            self._remove(beyond(self._fields, limit))

    def attribute(self) -> None:
        """Add the resources to show with the record (ACAP 1.0 section-2.5.5.2.5)."""
        included = dict.fromkeys(
            resource for use in self._uses for resource in use.qualifiers.must_include
        )
        if included:
            self._added[ATTRIBUTION] = RESOURCES.write(included)

    def license(self) -> None:
        """Add the RSL documents that permit the uses, and the operator's own licences."""
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
        """Cut the record, and adapt the spans in its tag.

        `without`: indices of the elements that are removed. `removed_names`: fields that are
        removed with their names. RefusedError: the record or an element may not be shortened."""
        removed = {field: ranges for field, ranges in removed.items() if ranges != []}
        is_changed = bool(removed or removed_names)
        if is_changed and any(
            "any" in use.qualifiers.prohibited_modifications and not use.qualifiers.must_use
            for use in self._uses
        ):
            raise RefusedError("modified")
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
                raise RefusedError("clip", self._tag.reasons_of(self._tag.elements[number]))
            remaining = element | {"spans": cut.moved(element["spans"])}
            if not removed_names.isdisjoint(element.get("names", ())):
                remaining["names"] = [
                    name for name in element["names"] if name not in removed_names
                ]
            elements.append(remaining)
        self.record = cut.fields
        self._raw = self._raw | {"elements": elements}

    def _keeps_length(self, element: dict[str, Any]) -> bool:
        """Return True if the element may be shown at full length or not at all."""
        return not _CLIP.isdisjoint(element["deny"]) and (
            self._is_limited or any(map(_shows, self._terms.uses))
        )


def _is_file(value: Any) -> bool:
    """Return True if a value describes a file that a media pipeline has stored."""
    return isinstance(value, dict) and value.keys() >= _OF_FILE


def _reference(reason: Mapping[str, Any]) -> str:
    """Return the REFERENCE in the text of an arrangement, `HOST: USE, REFERENCE`.

    "" if the arrangement has no reference."""
    _, _, reference = reason["text"].partition(": ")[2].partition(",")
    return str(reference.strip())


@lru_cache(maxsize=4096)
def _compared(url: str) -> str:
    """Return a URL in the spelling for comparison, because Scrapy escapes URLs.

    An invalid URL is returned unchanged."""
    try:
        return canonical(url.strip())
    except ValueError:
        return url


def _urls_in(values: Iterable[Any]) -> Iterator[str]:
    """Yield the texts in values that may be URLs, in the spelling for comparison."""
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
    """Return True if these prohibited actions refuse an element for one of the uses."""
    return any(refuses(deny, use, vocabulary) for use in uses)
