"""Files and images that media pipelines fetch for the items of a page.

The statements of the page bind the items that are made of it (META-3). Each file is judged like a
page, by its own policies and by its own header fields.

A media pipeline sends one request for all items that share a file, and the request does not show
for which items it was made. Therefore a page's refusal takes effect earlier: when the pipeline
makes the requests of an item of this page, they are removed. Items of other pages still get the
file. A refusal by the file's own statements applies to all items. It takes effect when the file
arrives, before the pipeline uses it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response
from scrapy.pipelines.media import MediaPipeline
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.misc import arg_to_iter

from comity.gate.pages.responses import ResponsePages
from comity.gate.request.access import Access
from comity.gate.request.referrals import current_page
from comity.gate.run.flights import ClosingError
from comity.policies import Decision, Verdict
from comity.policies.answers.decision import UseDecision


def bind(pipeline: MediaPipeline, access: Access, pages: ResponsePages) -> None:
    """Change the pipeline so that it gets no refused files.

    A file is refused by the page of its item, or by its own statements."""
    make_requests, take = pipeline.get_media_requests, pipeline.media_downloaded

    def get_media_requests(item: Any, info: MediaPipeline.SpiderInfo) -> Iterator[Request]:
        requests, page = arg_to_iter(make_requests(item, info)), current_page.get()
        refused = refusal(page.embedded[use] for use in access.agent.uses) if page else None
        for request in requests:
            if refused is not None:
                access.record(request, refused)
            else:
                access.expect_file(request)
                yield request

    async def media_downloaded(
        response: Response, request: Request, info: MediaPipeline.SpiderInfo, *, item: Any = None
    ) -> Any:
        refused = await _refusal_of_file(response, access, pages)
        if refused is not None:
            access.record_stopped(response.request or request, refused)
            raise IgnoreRequest(str(refused))
        return await ensure_awaitable(take(response, request, info, item=item))

    pipeline.get_media_requests = get_media_requests  # type: ignore[assignment,method-assign]
    pipeline.media_downloaded = media_downloaded  # type: ignore[method-assign]


async def _refusal_of_file(
    response: Response, access: Access, pages: ResponsePages
) -> Decision | None:
    """Return the refusal of a file by its own statements, or None.

    The file is judged like a page: resources that its statements refer to are fetched first.
    Without declared uses, only a registry of works can refuse it."""
    if not access.agent.uses and not access.agent.opt_outs.has_works:
        return None
    try:
        page = await pages.page(response)
        if page is not None:
            page = await pages.completed(response, page)
    except ClosingError:
        raise IgnoreRequest("the crawl is ending") from None
    uses = access.agent.uses or ("crawl",)
    return refusal(page.uses[use] for use in uses) if page is not None else None


def refusal(decisions: Iterable[UseDecision]) -> Decision | None:
    """Return the refusal of a file, or None unless a source refuses every declared use.

    `decisions`: one for each declared use. A refusal by the operator's default does not count."""
    decided = tuple(decisions)
    if not decided or any(
        decision.verdict is not Verdict.DENY or not decision.stated for decision in decided
    ):
        return None
    reasons = dict.fromkeys(reason for decision in decided for reason in decision.reasons)
    return Decision(verdict=Verdict.DENY, reasons=tuple(reasons))
