from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.gate.fetching.reach import BLOCKS, Block, Reach, literal, reach_of

REACHES = {
    Reach.PUBLIC: [
        "8.8.8.8",
        "192.0.1.0",
        "172.32.0.1",
        "100.128.0.1",
        "198.20.0.1",
        "223.255.255.255",
        "2001:200::1",
        "2001:4860:4860::8888",
        "3ffe:ffff::1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::1",
    ],
    Reach.LOOPBACK: [
        "127.0.0.1",
        "127.255.255.254",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    ],
    Reach.PRIVATE: [
        "10.0.0.1",
        "172.16.0.1",
        "192.0.0.8",
        "192.0.0.170",
        "192.168.1.1",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "64:ff9b:1::1",
        "2001::1",
        "2001:1ff:ffff::1",
        "2001:db8::1",
        "3fff:fff::1",
        "5f00::1",
        "fd00::1",
        "fd00:ec2::254",
        "fec0::1",
        "feff::1",
        "::ffff:10.0.0.1",
    ],
    Reach.LINK_LOCAL: [
        "169.254.169.254",
        "fe80::1",
        "fe80::1%eth0",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
    ],
    Reach.NOWHERE: [
        "0.0.0.0",
        "0.1.2.3",
        "192.88.99.1",
        "224.0.0.1",
        "239.255.255.250",
        "255.255.255.255",
        "240.0.0.1",
        "::",
        "100::1",
        "100:0:0:1::1",
        "4000::1",
        "fe00::1",
        "ff02::1",
        "ff0e::1",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
    ],
}


@pytest.mark.requirement("SEC-2")
@pytest.mark.parametrize(
    ("address", "want"), [(address, reach) for reach, group in REACHES.items() for address in group]
)
def test_reach(address: str, want: Reach) -> None:
    assert reach_of(ip_address(address)) is want


# The blocks of https://www.iana.org/assignments/iana-ipv4-special-registry (2025), and of its
# counterpart for IPv6, that are not globally reachable, or for which this does not apply. Blocks
# that carry an IPv4 address are left out.
NOT_GLOBALLY_REACHABLE = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/29
    192.0.0.8/32 192.0.0.170/31 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15
    198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 255.255.255.255/32 ::1/128 ::/128 64:ff9b:1::/48
    100::/64 100:0:0:1::/64 2001::/32 2001:2::/48 2001:10::/28 2001:db8::/32 3fff::/20 5f00::/16
    fc00::/7 fe80::/10
"""


@pytest.mark.requirement("SEC-2")
@pytest.mark.parametrize("block", NOT_GLOBALLY_REACHABLE.split())
def test_no_block_of_the_registries_is_public(block: str) -> None:
    network = ip_network(block)
    assert Reach.PUBLIC not in {
        reach_of(network[0]),
        reach_of(network[-1]),
        reach_of(network[network.num_addresses // 2]),
    }


@pytest.mark.requirement("SEC-2")
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block.network))
def test_each_block_has_its_reach_up_to_its_ends(block: Block) -> None:
    assert {reach_of(block.network[0]), reach_of(block.network[-1])} == {block.reach}


@pytest.mark.requirement("SEC-2")
@given(st.ip_addresses())
def test_only_global_unicast_is_public(address: IPv4Address | IPv6Address) -> None:
    """Python's table, perhaps an old one, contains no further block."""
    if reach_of(address) is Reach.PUBLIC:
        assert address.is_global or (
            isinstance(address, IPv6Address) and (address.ipv4_mapped or address.sixtofour)
        )
        assert not address.is_multicast


@pytest.mark.requirement("SEC-2")
@pytest.mark.parametrize(
    ("host", "want"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("0x7f.1.", "127.0.0.1"),
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
def test_where_a_site_may_lead() -> None:
    allowed = {(site, target) for site in Reach for target in Reach if site.may_lead_to(target)}
    own_kind = {(reach, reach) for reach in Reach if reach is not Reach.NOWHERE}
    assert allowed == own_kind | {(site, Reach.PUBLIC) for site in Reach}


@pytest.mark.requirement("SEC-7")
def test_two_sites_lead_no_further_than_each_of_them() -> None:
    for one in Reach:
        for other in Reach:
            for target in Reach:
                if one.joined(other).may_lead_to(target):
                    assert one.may_lead_to(target)
                    assert other.may_lead_to(target)
