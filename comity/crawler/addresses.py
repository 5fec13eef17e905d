"""Where an address is, and which addresses a policy file's redirects and references may lead to (SEC-2)."""

from __future__ import annotations

import enum
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

IPAddress = IPv4Address | IPv6Address

NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052 section-2.1: the IPv4 address stands in the last 32 bits


class Reach(enum.Enum):
    """From where an address can be reached."""

    PUBLIC = "public"
    PRIVATE = "private"
    LINK_LOCAL = "link-local"
    LOOPBACK = "loopback"
    NOWHERE = "reserved"  # multicast, unspecified, reserved: no server's own address

    def may_lead_to(self, target: Reach) -> bool:
        """Whether a site at such an address may redirect or refer there: to the public, or to its own kind."""
        return target is Reach.PUBLIC or (target is self and target is not Reach.NOWHERE)


def reach_of(address: IPAddress) -> Reach:
    """An IPv6 address that carries an IPv4 address reaches what that one reaches."""
    if isinstance(address, IPv6Address):
        carried = address.ipv4_mapped or address.sixtofour or _translated(address)
        if carried is not None:
            return reach_of(carried)
    if address.is_loopback:
        return Reach.LOOPBACK
    if address.is_multicast or address.is_unspecified or address.is_reserved:
        return Reach.NOWHERE
    if address.is_link_local:
        return Reach.LINK_LOCAL
    return Reach.PUBLIC if address.is_global else Reach.PRIVATE


def literal(host: str) -> IPAddress | None:
    """The address that the host of a URL spells out, in any of the spellings that resolvers take; None for a name."""
    try:
        return ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))  # "127.1", "0x7f000001", "2130706433"
    except (OSError, ValueError):
        return None


def _translated(address: IPv6Address) -> IPv4Address | None:
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else None
