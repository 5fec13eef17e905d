# mypy: disable-error-code="misc, untyped-decorator"
"""Scrapy's own tests of download handlers, for comity's. run.py puts this module beside them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.utils.bases import download_handlers_http as bases  # type: ignore[import-not-found]
from tests.utils.decorators import coroutine_test  # type: ignore[import-not-found]

from comity.crawler.downloads.handler import DownloadHandler
from comity.gate.options import SettingsError

pytestmark = pytest.mark.only_asyncio

HANDLER = "comity.crawler.downloads.handler.DownloadHandler"


class OfComity:
    handler_bad_header_handling = "fail"
    expected_http_proxy_request_body = b"http://example.com/"
    tls_log_message = "SSL connection to 127.0.0.1 using protocol TLSv1.3, cipher"

    @property
    def download_handler_cls(self) -> type[DownloadHandler]:
        return DownloadHandler

    @property
    def settings_dict(self) -> dict[str, Any]:
        return {"DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER}}


class TestHttp(OfComity, bases.TestHttpBase):
    pass


class TestHttps(OfComity, bases.TestHttpsBase):
    @pytest.mark.skip(reason="The setting is one of Twisted's handlers")
    def test_verify_certs_deprecated(self) -> None:
        pass


class TestSimpleHttps(OfComity, bases.TestSimpleHttpsBase):
    pass


class TestHttpsWrongHostname(OfComity, bases.TestHttpsWrongHostnameBase):
    pass


class TestHttpsInvalidDNSId(OfComity, bases.TestHttpsInvalidDNSIdBase):
    pass


class TestHttpsInvalidDNSPattern(OfComity, bases.TestHttpsInvalidDNSPatternBase):
    pass


class TestHttpsCustomCiphers(OfComity, bases.TestHttpsCustomCiphersBase):
    pass


class TestHttpsDefaultCiphers(OfComity, bases.TestHttpsDefaultCiphersBase):
    pass


class TestHttpsTLSVersion(OfComity, bases.TestHttpsTLSVersionBase):
    """An invalid version ends with comity's own words."""

    @coroutine_test
    async def test_invalid_min_version_setting(self) -> None:
        with pytest.raises(SettingsError, match="DOWNLOAD_TLS_MIN_VERSION `invalid` is not a"):
            async with self.get_dh(client_tls_min="invalid", client_tls_max=None):
                pass

    @coroutine_test
    async def test_invalid_max_version_setting(self) -> None:
        with pytest.raises(SettingsError, match="DOWNLOAD_TLS_MAX_VERSION `invalid` is not a"):
            async with self.get_dh(client_tls_min=None, client_tls_max="invalid"):
                pass


class TestHttpWithCrawler(OfComity, bases.TestHttpWithCrawlerBase):
    pass


class TestHttpsWithCrawler(TestHttpWithCrawler):
    is_secure = True


class TestHttpProxy(OfComity, bases.TestHttpProxyBase):
    pass
