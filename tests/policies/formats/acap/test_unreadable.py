"""What cannot be read refuses, and nothing else lifts the refusal."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from comity.policies import Agent, Site, Verdict

NEWSBOT = Agent("newsbot", purposes=("news",))


def crawl(text: str, path: str, agent: Agent = NEWSBOT, files: Mapping[str, bytes] = MappingProxyType({})) -> Verdict:
    site = Site.from_files("https://example.com", {"/robots.txt": text.encode(), **files})
    return site.access(agent, f"https://example.com{path}").verdict


@pytest.mark.requirement("ACAP-3", "ACAP-10", "ACAP-45")
@pytest.mark.parametrize("crawler", ["ACAP-crawler:", "ACAP-crawler", f"ACAP-crawler: {'x' * 40_000}"])
def test_a_record_for_nobody_knows_whom(crawler: str) -> None:
    """It refuses the crawler that another record permits by name; its permission may be meant for others."""
    text = f"ACAP-crawler: newsbot\nACAP-allow-crawl: /\n{crawler}\nACAP-disallow-crawl: /x\nACAP-allow-crawl: /x/y\n"
    assert crawl(text, "/x/y") is Verdict.DENY
    assert crawl(text, "/z") is Verdict.ALLOW
    assert crawl(f"{crawler}\nACAP-allow-crawl: /y\n", "/y") is Verdict.ALLOW  # by nobody's word


@pytest.mark.requirement("ACAP-4", "ACAP-15", "ACAP-16")
def test_a_purpose_that_cannot_be_read() -> None:
    """A permission for a purpose comes before a general prohibition of the same pattern, not before this one."""
    sub_records = "ACAP-usage-purpose:\nACAP-disallow-crawl: /x\nACAP-usage-purpose: news\nACAP-allow-crawl: /x\n"
    assert crawl(f"ACAP-crawler: *\n{sub_records}", "/x") is Verdict.DENY
    assert crawl(f"ACAP-crawler: *\n{sub_records}", "/x", Agent("newsbot")) is Verdict.DENY
    general = "ACAP-disallow-crawl: /x\nACAP-usage-purpose: news\nACAP-allow-crawl: /x\n"
    assert crawl(f"ACAP-crawler: *\n{general}", "/x") is Verdict.ALLOW


@pytest.mark.requirement("ACAP-12", "ACAP-14")
@pytest.mark.parametrize(
    ("locator", "verdict", "findings"),
    [
        ("gopher://example.org/", Verdict.DENY, [2]),
        ("http://[", Verdict.DENY, [2]),
        ("/robots.txt", Verdict.ALLOW, [2]),
        ("https://EXAMPLE.com:443/robots.txt#a", Verdict.ALLOW, [2]),
    ],
)
def test_a_reference_that_leads_nowhere(locator: str, verdict: Verdict, findings: list[int]) -> None:
    text = f"ACAP-crawler: newsbot\nACAP-permissions-reference: {locator}\n".encode()
    site = Site.from_files("https://example.com", {"/robots.txt": text})
    assert site.access(NEWSBOT, "https://example.com/").verdict is verdict
    assert [finding.line for finding in site.findings if finding.rule == "acap.reference"] == findings
    assert site.references(NEWSBOT) == ()


@pytest.mark.requirement("ACAP-4", "ACAP-12", "ACAP-14")
def test_a_reference_in_a_sub_record() -> None:
    """The grammar has none there: what the file says would hold for any purpose."""
    text = "ACAP-crawler: *\nACAP-disallow-crawl: /\nACAP-usage-purpose: news\nACAP-permissions-reference: /news.txt\n"
    files = {"/news.txt": b"ACAP-allow-crawl: /news/\n"}
    assert crawl(text, "/news/1", Agent("newsbot"), files) is Verdict.DENY
    assert crawl(text, "/news/1", NEWSBOT, files) is Verdict.DENY
    general = text.replace("ACAP-usage-purpose: news\n", "")
    assert crawl(general, "/news/1", Agent("newsbot"), files) is Verdict.ALLOW
