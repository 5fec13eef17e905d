from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.crawler.addresses import Reach, literal, reach_of

REACHES = {
    Reach.PUBLIC: ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"],
    Reach.LOOPBACK: ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"],
    Reach.PRIVATE: [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "fd00::1",
        "::ffff:10.0.0.1",
    ],
    Reach.LINK_LOCAL: ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"],
    Reach.NOWHERE: [
        "0.0.0.0",
        "224.0.0.1",
        "239.255.255.250",
        "255.255.255.255",
        "240.0.0.1",
        "::",
        "ff02::1",
        "ff0e::1",
        "::127.0.0.1",
    ],
}


@pytest.mark.requirement("SEC-2")
@pytest.mark.parametrize(("address", "want"), [(address, reach) for reach, group in REACHES.items() for address in group])
def test_reach(address: str, want: Reach) -> None:
    assert reach_of(ip_address(address)) is want


@pytest.mark.requirement("SEC-2")
@given(st.ip_addresses())
def test_only_global_unicast_is_public(address: IPv4Address | IPv6Address) -> None:
    if reach_of(address) is Reach.PUBLIC:
        assert address.is_global or (isinstance(address, IPv6Address) and address.ipv4_mapped)
        assert not (address.is_private and not (isinstance(address, IPv6Address) and address.ipv4_mapped))


@pytest.mark.requirement("SEC-2")
@pytest.mark.parametrize(
    ("host", "want"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("example.com", None),
        ("1.2.3.4.example.com", None),
        ("", None),
        ("a" * 300, None),
        ("\u2460.1.1.1", None),
        ("1.1.1.1\x00", None),
    ],
)
def test_literal(host: str, want: str | None) -> None:
    assert literal(host) == (ip_address(want) if want else None)


@pytest.mark.requirement("SEC-2")
def test_where_a_redirect_may_lead() -> None:
    allowed = {(site, target) for site in Reach for target in Reach if site.may_lead_to(target)}
    own_kind = {(reach, reach) for reach in Reach if reach is not Reach.NOWHERE}
    assert allowed == own_kind | {(site, Reach.PUBLIC) for site in Reach}
