"""Reaches of addresses, and the addresses that a site may lead to (SEC-2, SEC-7).

The blocks are those of IANA's special-purpose address registries, plus two kinds that these leave
to other registries: multicast and deprecated site-local addresses. Python's own `ipaddress` is not
used for this, because its blocks depend on the version of Python."""

from __future__ import annotations

import enum
import socket
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import starmap
from typing import NamedTuple

IPAddress = IPv4Address | IPv6Address


class Reach(enum.Enum):
    """The networks from which an address can be reached."""

    PUBLIC = "public"
    PRIVATE = "private"
    LINK_LOCAL = "link-local"
    LOOPBACK = "loopback"
    NOWHERE = "reserved"  # multicast, unspecified, reserved: no server has such an address

    def may_lead_to(self, target: Reach) -> bool:
        """Return True if a site with this reach may lead to `target`: PUBLIC, or the same reach."""
        return target is Reach.PUBLIC or (target is self and target is not Reach.NOWHERE)

    def joined(self, other: Reach) -> Reach:
        """Return the reach of a request that two sites led to, one after the other.

        If they differ, only public addresses remain.
        """
        return self if self is other else Reach.PUBLIC


class Block(NamedTuple):
    """A block of addresses that are not public.

    Attributes:
        network: The addresses.
        reach: Their reach.
        name: Their name in the registry.
        rfc: The RFC that defines them.
    """

    network: IPv4Network | IPv6Network
    reach: Reach
    name: str
    rfc: str


def _block(network: str, reach: Reach, name: str, rfc: str) -> Block:
    return Block(ip_network(network), reach, name, rfc)


# https://www.iana.org/assignments/iana-ipv4-special-registry
# https://www.iana.org/assignments/iana-ipv6-special-registry
# Some globally reachable blocks lie within a block that is not (192.0.0.9, 2001:1::1, ...). They
# hold no web servers, so they count as part of the outer block.
BLOCKS: tuple[Block, ...] = tuple(
    starmap(
        _block,
        (
            ("0.0.0.0/8", Reach.NOWHERE, '"This network"', "RFC 791"),
            ("10.0.0.0/8", Reach.PRIVATE, "Private-Use", "RFC 1918"),
            ("100.64.0.0/10", Reach.PRIVATE, "Shared Address Space", "RFC 6598"),
            ("127.0.0.0/8", Reach.LOOPBACK, "Loopback", "RFC 1122"),
            ("169.254.0.0/16", Reach.LINK_LOCAL, "Link Local", "RFC 3927"),
            ("172.16.0.0/12", Reach.PRIVATE, "Private-Use", "RFC 1918"),
            ("192.0.0.0/24", Reach.PRIVATE, "IETF Protocol Assignments", "RFC 6890"),
            ("192.0.2.0/24", Reach.PRIVATE, "Documentation (TEST-NET-1)", "RFC 5737"),
            ("192.88.99.0/24", Reach.NOWHERE, "Deprecated (6to4 Relay Anycast)", "RFC 7526"),
            ("192.168.0.0/16", Reach.PRIVATE, "Private-Use", "RFC 1918"),
            ("198.18.0.0/15", Reach.PRIVATE, "Benchmarking", "RFC 2544"),
            ("198.51.100.0/24", Reach.PRIVATE, "Documentation (TEST-NET-2)", "RFC 5737"),
            ("203.0.113.0/24", Reach.PRIVATE, "Documentation (TEST-NET-3)", "RFC 5737"),
            ("224.0.0.0/4", Reach.NOWHERE, "Multicast", "RFC 5771"),
            ("240.0.0.0/4", Reach.NOWHERE, "Reserved", "RFC 1112"),
            ("::/128", Reach.NOWHERE, "Unspecified Address", "RFC 4291"),
            ("::1/128", Reach.LOOPBACK, "Loopback Address", "RFC 4291"),
            ("64:ff9b:1::/48", Reach.PRIVATE, "IPv4-IPv6 Translat.", "RFC 8215"),
            ("100::/64", Reach.NOWHERE, "Discard-Only Address Block", "RFC 6666"),
            ("100:0:0:1::/64", Reach.NOWHERE, "Dummy IPv6 Prefix", "RFC 9780"),
            ("2001::/23", Reach.PRIVATE, "IETF Protocol Assignments", "RFC 2928"),
            ("2001:db8::/32", Reach.PRIVATE, "Documentation", "RFC 3849"),
            ("3fff::/20", Reach.PRIVATE, "Documentation", "RFC 9637"),
            ("5f00::/16", Reach.PRIVATE, "Segment Routing (SRv6) SIDs", "RFC 9602"),
            ("fc00::/7", Reach.PRIVATE, "Unique-Local", "RFC 4193"),
            ("fe80::/10", Reach.LINK_LOCAL, "Link-Local Unicast", "RFC 4291"),
            ("fec0::/10", Reach.PRIVATE, "Site-Local Unicast (deprecated)", "RFC 3879"),
            ("ff00::/8", Reach.NOWHERE, "Multicast", "RFC 4291"),
        ),
    )
)

# RFC 4291 section-2.4: all global unicast addresses that IANA has assigned.
GLOBAL_UNICAST = IPv6Network("2000::/3")
# RFC 4291 section-2.5.5.2: the last 32 bits are an IPv4 address.
MAPPED = IPv6Network("::ffff:0:0/96")
# RFC 6052 section-2.1: the last 32 bits are an IPv4 address.
NAT64 = IPv6Network("64:ff9b::/96")
# RFC 3056 section-2: the 32 bits after the first 16 are an IPv4 address.
SIX_TO_FOUR = IPv6Network("2002::/16")


@lru_cache(maxsize=4096)
def reach_of(address: IPAddress) -> Reach:
    """Return the reach of an address. An IPv4 address within an IPv6 address decides its reach."""
    if isinstance(address, IPv6Address):
        embedded = _embedded_ipv4(address)
        if embedded is not None:
            return reach_of(embedded)
        address = IPv6Address(int(address))  # without its zone
    for block in BLOCKS:
        if address in block.network:
            return block.reach
    return Reach.NOWHERE if address.version == 6 and address not in GLOBAL_UNICAST else Reach.PUBLIC


def literal(host: str) -> IPAddress | None:
    """Return the address that the host of a URL spells out; None if the host is a name.

    All spellings that resolvers or browsers accept are read.
    """
    host = host.removesuffix(".")
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))  # "127.1", "0x7f000001", "2130706433"
    except (OSError, ValueError):
        return None


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    if address in MAPPED or address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address in SIX_TO_FOUR:
        return IPv4Address(int(address) >> 80 & 0xFFFFFFFF)
    return None
