"""Essential live tests, repeated with COMITY_DOWNLOAD_HANDLER."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from comity.policies.formats import WELL_KNOWN
from tests.live import (
    test_access,
    test_download_handler,
    test_enforcement,
    test_http2,
    test_inner_addresses,
    test_pace,
    test_tls,
)
from tests.selection import one_in

if TYPE_CHECKING:
    from tests.conftest import Crawled, Serve

    Crawl = Callable[..., Crawled]

crawl, crawl_urls = test_download_handler.crawl, test_download_handler.crawl_urls  # fixtures

test_each_hop_of_a_redirect_is_judged = test_access.test_each_hop_of_a_redirect_is_judged
test_retries_keep_the_delay = test_access.test_retries_keep_the_delay
test_what_a_connection_took = (
    test_pace.test_what_a_connection_took_without_an_answer_waits_for_another_turn
)
test_host_that_asks_to_be_left_alone_is = test_pace.test_host_that_asks_to_be_left_alone_is
test_redirects_lead_nobody_inside = test_inner_addresses.test_nor_by_redirects
test_an_inner_site_is_known_over_its_redirects = (
    test_inner_addresses.test_an_inner_site_is_known_over_its_redirects
)
test_what_an_errback_makes = (
    test_inner_addresses.test_what_an_errback_makes_of_a_response_its_site_leads_to
)
test_through_a_proxy_only_addresses_in_urls_are_judged = (
    test_inner_addresses.test_through_a_proxy_only_addresses_in_urls_are_judged
)
test_only_trusted_sites = test_tls.test_only_sites_with_a_certificate_that_is_trusted_are_crawled
test_through_a_proxy_certificates_are_those_of_the_sites = (
    test_tls.test_through_a_proxy_certificates_are_those_of_the_sites
)


class TestHeaders:
    test_a_body_that_nobody_may_use_is_not_read = (
        test_enforcement.TestHeaders.test_a_body_that_nobody_may_use_is_not_read
    )


@pytest.mark.requirement("MEET-1")
@pytest.mark.parametrize("shape", one_in(2, test_http2.SHAPES))
def test_no_request_is_another_one_than_was_judged(serve: Serve, crawl: Crawl, shape: str) -> None:
    server = serve({"/robots.txt": "User-agent: *\nDisallow: /private\n", "/a": "page"})
    settings = {"HTTPERROR_ALLOW_ALL": True, "RETRY_ENABLED": False}
    crawled = crawl(test_http2.Shapes, settings, origin=server.origin, shape=shape)
    assert not crawled.items
    assert server.paths == ["/robots.txt"]


@pytest.mark.requirement("SEC-7")
def test_no_request_goes_to_an_address_that_changed(serve: Serve, crawl: Crawl) -> None:
    """The name was public when the policies were fetched. Scrapy's own handlers ask the server."""
    inside = serve({"/secret": "page"})
    last = serve.Answer(status=404, headers={"Connection": "close"})
    policies = serve({WELL_KNOWN[-1]: last}, host="127.0.0.2", port=inside.port)
    link = f"http://localhost:{inside.port}/secret"
    public = serve({"/a": test_inner_addresses.page(link)}, host="127.0.0.2")
    crawled = crawl(test_inner_addresses.FollowsMoving, urls=[public.url("/a")])
    assert test_inner_addresses.refused(crawled) == {link}
    assert inside.seen == []
    assert "/secret" not in policies.paths
    assert "led to localhost, which is at 127.0.0.1" in crawled.log


@pytest.mark.requirement("SEC-7", "META-1")
def test_receivers_of_signals_work_for_the_request(serve: Serve, crawl: Crawl) -> None:
    """The site that led to the request leads to their requests. They cannot change its response."""
    inside = serve({"/secret": "page"})
    fields = {"X-Inside": "yes", "X-Robots-Tag": "noai"}
    routes: dict[str, Any] = {
        "/a": test_inner_addresses.page("/b"),
        "/b": serve.Answer("b", headers=fields),
    }
    public = serve(routes, host="127.0.0.2")
    settings = {"INSIDE": inside.url("/secret"), "COMITY_USES": "train"}
    crawled = crawl(test_inner_addresses.Receives, settings, urls=[public.url("/a")])
    assert inside.seen == []
    assert f"Refused <GET {inside.url('/secret')}>: deny: comity.inner-address" in crawled.log
    assert crawled.stats["comity/access/stopped/robots-meta.disallow"] == 1
