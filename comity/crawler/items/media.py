"""Files and images that are embedded in a page: what the page says of them binds the items that are made of it (META-3).

A request does not show for which item it is made, and media pipelines answer all items that have a file in common by one request.
So requests that a page refuses are taken out where the pipeline makes them, item by item, and other items still get the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy.http import Request
from scrapy.pipelines.media import MediaPipeline
from scrapy.utils.misc import arg_to_iter

from comity.crawler.item_pages import current_page
from comity.policies import Decision, Page, Verdict


def bind(pipeline: MediaPipeline, record: Callable[[Request, Decision], None]) -> None:
    """Keep the pipeline, from now on, from requests for files that the page of the item refuses. `record`: is told of each."""
    original = pipeline.get_media_requests

    def get_media_requests(item: Any, info: MediaPipeline.SpiderInfo) -> Any:
        requests, refused = original(item, info), refusal(current_page.get())
        if refused is None:
            return requests
        for request in arg_to_iter(requests):
            record(request, refused)
        return []

    pipeline.get_media_requests = get_media_requests  # type: ignore[method-assign]


def refusal(page: Page | None) -> Decision | None:
    """The refusal of the files that are embedded in the page, where it refuses every declared use of them. Silence is no
    refusal."""
    decisions = [page.embedded[use] for use in page.agent.uses] if page else []
    if not decisions or any(decision.verdict is not Verdict.DENY or not decision.stated for decision in decisions):
        return None
    reasons = dict.fromkeys(reason for decision in decisions for reason in decision.reasons)
    return Decision(verdict=Verdict.DENY, reasons=tuple(reasons))
