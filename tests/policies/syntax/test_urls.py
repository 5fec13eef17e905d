"""URLs as people type them."""

from __future__ import annotations

import pytest

from comity.policies.syntax.urls import typed_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("example.com", "https://example.com"),
        ("example.com:8080/a?b", "https://example.com:8080/a?b"),
        ("localhost:80", "https://localhost:80"),
        ("[::1]:8080/", "https://[::1]:8080/"),
        ("http", "https://http"),
        ("httpbin.org/get", "https://httpbin.org/get"),
        ("example.com/a@b", "https://example.com/a@b"),
        ("example.com/mailto:a@b", "https://example.com/mailto:a@b"),
        ("http://example.com/", "http://example.com/"),
        ("HTTPS://EXAMPLE.com/a", "HTTPS://EXAMPLE.com/a"),
        ("https://me:secret@example.com/", "https://me:secret@example.com/"),
        ("münchen.de/ü", "https://münchen.de/ü"),
    ],
)
def test_a_url_may_be_typed_without_its_scheme(text: str, url: str) -> None:
    assert typed_url(text) == url


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mailto:x@y.z", "`mailto:x@y.z` is not an http or https URL: write `https://y.z`"),
        (
            "https://mailto:x@y.z",
            "`https://mailto:x@y.z` is not an http or https URL: write `https://y.z`",
        ),
        ("x@y.z", "`x@y.z` is not an http or https URL: write `https://y.z`"),
        ("x@y.z/a", "`x@y.z/a` is not an http or https URL: write `https://y.z/a`"),
        ("http//typo", "`http//typo` is not an http or https URL: write `http://typo`"),
        ("HTTPS//typo/a", "`HTTPS//typo/a` is not an http or https URL: write `https://typo/a`"),
        ("https:/typo", "`https:/typo` is not an http or https URL: write `https://typo`"),
        ("http:typo", "`http:typo` is not an http or https URL: write `http://typo`"),
        (
            "javascript:alert(1)",
            "`javascript:alert(1)` is not an http or https URL: write https:// and a host",
        ),
        ("ftp://example.com", "`ftp://example.com` is not an http or https URL"),
        ("tel:+123", "`tel:+123` is not an http or https URL: write https:// and a host"),
        ("https:///a", "`https://` has no host"),
        ("", "`https://` has no host"),
        ("foo bar", "`https://foo bar` has no host"),
        (
            "example.com:99999",
            "`https://example.com:99999` is not an origin: Port out of range 0-65535",
        ),
    ],
)
def test_what_is_no_url_is_told_with_the_right_form(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^`") as raised:
        typed_url(text)
    assert str(raised.value) == message
