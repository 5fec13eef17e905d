"""The features for which setup.cfg asks for its oldest versions.

Each is missing in the version before."""

from __future__ import annotations

from collections.abc import Callable

import http_sf
import pytest
from protego import Protego
from scrapy.settings import default_settings
from w3lib.html import get_base_url

FEATURES: dict[str, Callable[[], object]] = {
    "http-sf 1.4 reads an empty dictionary": lambda: http_sf.parse(b"", tltype="dictionary") == {},
    "protego 0.7 reads Visit-time": lambda: Protego.parse(
        "User-agent: *\nVisit-time: 0200-0630\n"
    ).visit_time("examplebot"),
    "scrapy 2.17 has HTTP/2 without the reactor": lambda: (
        "HTTPX_HTTP2_ENABLED" in vars(default_settings)
    ),
    "w3lib 2.5 reads a base without quotation marks": lambda: (
        get_base_url("<base href=/a/b>", "http://x.test/") == "http://x.test/a/b"
    ),
}


@pytest.mark.parametrize("has_feature", FEATURES.values(), ids=FEATURES)
def test_a_feature_that_needs_the_oldest_version_is_there(
    has_feature: Callable[[], object],
) -> None:
    assert has_feature()
