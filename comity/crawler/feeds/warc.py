"""WARC files of a crawl (ISO 28500, WARC 1.1): exchanges, policies and items with their tags.

Each item is a `metadata` record (application/json) that refers to the record of its response. The
record of a response is written once in a file, right after that of its first item. Each record is a
gzip member of its own, so everything before the end of a truncated file can be read."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http.client import responses as REASONS  # noqa: N812  # it is a constant
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import urlsplit
from uuid import uuid4
from weakref import WeakKeyDictionary, ref

from itemadapter import ItemAdapter
from scrapy.exceptions import NotConfigured
from scrapy.exporters import BaseItemExporter
from scrapy.http import HtmlResponse, Request, Response, TextResponse, XmlResponse
from scrapy.utils.serialize import ScrapyJSONEncoder

from comity.bounded import Bounded
from comity.crawler.crawl import Crawl
from comity.crawler.feeds.responses import (
    NEEDS_RESPONSES,
    FetchFields,
    ItemResponses,
    no_fields,
)
from comity.crawler.scrapy_internals import fields_of
from comity.dataset.files.warc.items import POLICY
from comity.dataset.records import FIELD, SPARE_FIELD
from comity.gate.request.passage import Arrival
from comity.policies.answers.fetched import Fetched
from comity.policies.syntax.urls import origin_of

try:
    from comity.crawler.feeds.warc_records import RecordWriter, head_of
except ModuleNotFoundError:
    # Scrapy loads the exporters of all formats. ItemResponses says how to install the extra.
    raise NotConfigured from None

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

MAX_COPIES = 100_000  # copies of policy files that a writer remembers

# Fields that would let others act in the operator's name.
SECRET = frozenset((b"authorization", b"cookie", b"proxy-authorization", b"set-cookie"))
# Fields that were true of the transfer, but are not of the body as it is kept.
TRANSFER = frozenset((b"content-length", b"transfer-encoding"))


class WarcExporter(BaseItemExporter):
    """Exporter. It needs the extension ItemResponses for the response of each item."""

    compressed: ClassVar[bool] = False

    def __init__(
        self, file: IO[bytes], *, crawler: Crawler, has_fetch: bool = False, **options: Any
    ) -> None:
        """`has_fetch`: True if items get the fields about the fetch of their page."""
        super().__init__(**options)
        self._crawler = crawler
        self._crawl = Crawl.of(crawler)
        responses = crawler.get_extension(ItemResponses)
        if responses is None:
            raise NotConfigured(NEEDS_RESPONSES.format("WARC feeds need"))
        self._responses = responses
        self._fetch_fields = FetchFields(crawler) if has_fetch else no_fields
        self._secret = SECRET | {self._crawl.agent.key_header.lower().encode("latin-1")}
        self._encoder: json.JSONEncoder = ScrapyJSONEncoder()
        self._records = RecordWriter(file, compressed=self.compressed)
        self._record_ids: WeakKeyDictionary[Response, str] = WeakKeyDictionary()
        # URL and SHA-256 of the policy files that were written, the oldest first.
        self._copies: Bounded[tuple[str, str], None] = Bounded(MAX_COPIES)
        self._warned = False

    @classmethod
    def from_crawler(cls, crawler: Crawler, file: IO[bytes], **options: Any) -> Self:
        return cls(file, crawler=crawler, **options)

    def start_exporting(self) -> None:
        self._records.write_info(
            user_agent=self._crawl.agent.user_agent,
            description="Bodies without the content codings that were decoded;"
            " fields that carry cookies and keys left out",
        )

    def export_item(self, item: Any) -> None:
        """Write the item, after the policies that its tag names and before its new exchange."""
        record = fields_of(self, item) | self._fetch_fields(item)
        tag = self._crawl.tags.tag_of(item)
        # The file is an archive, so its items carry their tag even if COMITY_TAG says otherwise.
        if tag is not None:
            field = self._crawl.tags.field_of(item)
            record[field or (SPARE_FIELD if FIELD in record else FIELD)] = (
                ItemAdapter(item)[field] if field else tag
            )
        octets = self._encoder.encode(record).encode()
        response = self._responses.response(item)
        if response is None:
            self._records.write(
                "metadata", datetime.now(UTC), octets, content_type="application/json"
            )
            return
        arrival = self._responses.arrival(response)
        if isinstance(tag, dict):
            self._write_policies(tag, response)
        is_new = response not in self._record_ids
        name = self._record_ids.setdefault(response, f"<urn:uuid:{uuid4()}>")
        fields = {
            "WARC-Target-URI": response.url,
            "WARC-Refers-To": name,
            "WARC-Concurrent-To": name,
        }
        self._records.write(
            "metadata", arrival.received_at, octets, fields, content_type="application/json"
        )
        if is_new:
            self._write_exchange(response, arrival, name)

    def _write_exchange(self, response: Response, arrival: Arrival, name: str) -> None:
        fields = {"WARC-Target-URI": response.url, "WARC-Record-ID": name}
        if response.ip_address is not None:
            fields["WARC-IP-Address"] = str(response.ip_address)
        if truncation := _truncation(response):
            fields["WARC-Truncated"] = truncation
        if urlsplit(response.url).scheme not in ("http", "https"):
            self._records.write(
                "resource",
                arrival.received_at,
                response.body,
                fields,
                content_type=_media_type(response),
            )
            return
        self._records.write(
            "response",
            arrival.received_at,
            response.body,
            fields,
            head=self._response_head(response, arrival),
        )
        if request := response.request:
            request_fields = {"WARC-Target-URI": response.url, "WARC-Concurrent-To": name}
            self._records.write(
                "request",
                arrival.received_at,
                request.body,
                request_fields,
                head=self._request_head(request),
            )

    def _response_head(self, response: Response, arrival: Arrival) -> bytes:
        sent = [(key, value) for key, values in response.headers.items() for value in values]
        fields = [(key, value) for key, value in sent if key.lower() not in self._secret | TRANSFER]
        length = str(len(response.body)).encode()
        changed = [
            (key, value) for key, value in sent if key.lower() in TRANSFER and value != length
        ]
        if tuple(response.headers.getlist("Content-Encoding")) != arrival.encodings:
            changed += [(b"Content-Encoding", value) for value in arrival.encodings]
        fields += [(b"X-Crawler-" + key, value) for key, value in changed]
        protocol = (
            response.protocol if (response.protocol or "").startswith("HTTP/1") else "HTTP/1.1"
        )
        return head_of(
            f"{protocol} {response.status} {REASONS.get(response.status, '')}",
            [*fields, (b"Content-Length", length)],
        )

    def _request_head(self, request: Request) -> bytes:
        parts = urlsplit(request.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        sent = [(key, value) for key, values in request.headers.items() for value in values]
        fields = [(key, value) for key, value in sent if key.lower() not in self._secret | TRANSFER]
        if b"Host" not in request.headers:
            fields.insert(0, (b"Host", parts.netloc.rpartition("@")[2].encode()))
        if request.body:
            fields.append((b"Content-Length", str(len(request.body)).encode()))
        return head_of(f"{request.method} {target} HTTP/1.1", fields)

    def _write_policies(self, tag: Mapping[str, Any], response: Response) -> None:
        """Write the copies of policy files by which the item was judged, each once."""
        for url, policy in tag["policies"].items():
            key = url, policy["sha256"]
            if policy["sha256"] is None or key in self._copies:
                continue
            file = next(self._copies_of(url, policy["sha256"], response), None)
            if file is None:
                self._warn_of(url)
                continue
            self._copies[key] = None
            content_type = (
                file.header(b"content-type").decode("latin-1") or "application/octet-stream"
            )
            fields = {"WARC-Target-URI": url, POLICY: policy["sha256"]}
            self._records.write(
                "resource",
                file.fetched_at or datetime.now(UTC),
                file.body,
                fields,
                content_type=content_type,
            )

    def _copies_of(self, url: str, sha256: str, response: Response) -> Iterator[Fetched]:
        request = response.request
        outgoing = self._crawl.passages[ref(request)].outgoing_to(request.url) if request else None
        sites = [outgoing.site] if outgoing else []
        for candidate in (response.url, url):
            with suppress(ValueError):  # a URL without an origin
                policies = self._crawl.policies.cached(origin_of(candidate))
                sites += [policies.site] if policies else []
        for site in sites:
            if url in site.files and site.policies[url]["sha256"] == sha256:
                yield site.files[url]

    def _warn_of(self, url: str) -> None:
        """Count a missing copy, and warn of the first one."""
        assert self._crawler.stats
        self._crawler.stats.inc_value("comity/warc/policy-missing")
        if not self._warned:
            self._warned = True
            logger.warning(
                "%(url)s is not in the WARC file: the copy that decided is no longer known",
                {"url": url},
            )


class CompressedWarcExporter(WarcExporter):
    compressed = True


def _media_type(response: Response) -> str:
    """Return the media type of a response; without header fields, the one that Scrapy takes."""
    if content_type := response.headers.get("Content-Type"):
        return content_type.decode("latin-1")
    if not isinstance(response, TextResponse):
        return "application/octet-stream"
    kinds = {HtmlResponse: "text/html", XmlResponse: "application/xml"}
    kind = next((name for cls, name in kinds.items() if isinstance(response, cls)), "text/plain")
    return f"{kind}; charset={response.encoding}"


def _truncation(response: Response) -> str:
    """Return why the body is incomplete, as WARC 1.1 section-5.13 names it; "": it is complete."""
    if "dataloss" in response.flags:
        return "disconnect"
    return "unspecified" if "download_stopped" in response.flags else ""
