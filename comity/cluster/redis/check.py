"""The check of the server of the shared state, before a crawl begins.

A crawl relies on a server that keeps the calls that it has acknowledged, and refuses calls when it
has no room. All faults of a server are reported at once, each with its remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from redis import Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    RedisClusterException,
    RedisError,
)
from redis.retry import Retry

from comity.cluster.address import PASSWORD, SETTING
from comity.cluster.redis.address import StateAddress
from comity.cluster.redis.scripts import SHARED_VERSION
from comity.cluster.redis.tls import tls_remedy
from comity.cluster.steps.line import PATIENCE
from comity.cluster.steps.queue import KEEPS
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

OLDEST = (6, 2)
VERSION = "comity:version"  # key of the version of pace and policies; a crawl has its own version
DEFAULT_MEMORY = "4gb"  # for a server that does not tell the memory of its machine

# Texts of errors, in lower case, and their remedies.
_REMEDIES = (
    (
        "db index is out of range",
        "write a lower number of the database, or raise `databases` in redis.conf",
    ),
    ("cluster mode is not enabled", "write redis:// or rediss://, as the server is not a Cluster"),
    ("cluster support disabled", "write redis:// or rediss://, as the server is not a Cluster"),
    (
        "no permission",
        "give the user its keys and commands: ACL SETUSER {user} resetkeys ~comity:* +@all -@admin",
    ),
    ("read only replica", "write the address of its primary"),
    ("used memory", "raise `maxmemory`, or delete a crawl with `comity frontier NAME --delete`"),
    ("loading the dataset", "the server reads its files: start again when it has"),
    ("max number of clients", "raise `maxclients` in redis.conf"),
    ("misconf", "the server cannot write its files: look at its log, and at the room on its disk"),
    ("slot", "some slots of the Cluster have no node: see `redis-cli --cluster check HOST:PORT`"),
    (
        "clusterdown",
        "some slots of the Cluster have no node: see `redis-cli --cluster check HOST:PORT`",
    ),
    ("name or service not known", "there is no such host: check its spelling"),
    ("nodename nor servname", "there is no such host: check its spelling"),
    ("no address associated", "there is no such host: check its spelling"),
)


class Fault(NamedTuple):
    """A reason not to rely on a server.

    Attributes:
        problem: A sentence about the server.
        remedy: A sentence that tells what to do.
        line: The remedy as a line of redis.conf, and as arguments of CONFIG SET; "" for none.
    """

    problem: str
    remedy: str
    line: str = ""


def check_server(address: StateAddress, *, sets_version: bool = True) -> list[str]:
    """Return remarks about the server.

    `sets_version`: mark an empty database as one of comity's. False: change nothing.
    PolicyError, with all faults and their remedies: the crawl cannot rely on the server."""
    remarks: list[str] = []
    faults: dict[Fault, list[str]] = {}  # fault -> the nodes that have it, as HOST:PORT
    try:
        client = _client(address)
        try:
            for place, node in _nodes(address, client):
                info: Mapping[str, Any] = node.info("all")
                for fault in _faults(info):
                    faults.setdefault(fault, []).append(place)
                remarks += (
                    f"{place if address.is_cluster else address} {remark}"
                    for remark in _remarks(node, info)
                )
            version = client.get(VERSION)
            # Set only once, because a full server can still serve the crawls that it has.
            if sets_version and version is None and not faults:
                client.set(VERSION, SHARED_VERSION, nx=True)
                version = client.get(VERSION)
            if version is not None and int(version) != SHARED_VERSION:
                faults[
                    Fault(
                        f"It has data of version {int(version)}, and this comity knows version"
                        f" {SHARED_VERSION}.",
                        "Use one version of comity for all workers, or another database.",
                    )
                ] = []
        finally:
            client.close()
    except (AuthenticationError, AuthorizationError) as error:
        raise PolicyError(
            f"{SETTING}: {address} refuses user or password ({printable(str(error))}):"
            f" set the environment variable {PASSWORD}"
        ) from None
    except (RedisError, RedisClusterException, OSError, ValueError, TypeError) as error:
        raise PolicyError(
            f"{SETTING}: {address} cannot be used ({printable(str(error))}):"
            f" {_remedy(address, error)}"
        ) from None
    if faults:
        raise PolicyError(_refusal(address, faults))
    return remarks


def _client(address: StateAddress) -> Any:
    options = address.client_options(PATIENCE)
    if address.is_cluster:
        return RedisCluster(**options)
    return Redis(**options, retry=Retry(NoBackoff(), 0))


def _nodes(address: StateAddress, client: Any) -> Iterator[tuple[str, Any]]:
    """Yield each node that takes writes, with its HOST:PORT."""
    if not address.is_cluster:
        yield f"{address.host}:{address.port}", client
        return
    for node in client.get_primaries():
        yield f"{node.host}:{node.port}", client.get_redis_connection(node)


def _faults(info: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of one node. `info`: its answer to INFO."""
    version = str(info.get("redis_version", "0"))
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        yield Fault(f"It is Redis {printable(version)}.", "Use Redis 6.2 or later, or Valkey.")
    if info.get("role") == "slave":
        primary = printable(f"{info.get('master_host')}:{info.get('master_port')}")
        yield Fault(
            "It is a replica, which takes no writes.",
            f"Write the address of its primary, {primary}.",
        )
    policy = str(info.get("maxmemory_policy", "not known"))
    if policy != KEEPS:
        yield Fault(
            f"It evicts requests when its memory is full (maxmemory-policy: {printable(policy)}).",
            f"Set `maxmemory-policy {KEEPS}`.",
            f"maxmemory-policy {KEEPS}",
        )
    if not int(info.get("maxmemory", 0)):
        half = int(info.get("total_system_memory", 0)) // 2
        line = f"maxmemory {f'{half >> 20}mb' if half else DEFAULT_MEMORY}"
        yield Fault(
            "It has no limit of memory, so the system ends it when the machine has no more.",
            f"Set `{line}`: half of the machine's memory, because writing its files takes memory"
            " too.",
            line,
        )
    if not int(info.get("aof_enabled", 0)):
        yield Fault(
            "It writes no log, so a restart loses requests.",
            "Set `appendonly yes`.",
            "appendonly yes",
        )


def _refusal(address: StateAddress, faults: Mapping[Fault, Sequence[str]]) -> str:
    lines = [f"{SETTING}: a crawl cannot rely on {address}:"]
    for fault, places in faults.items():
        names = f"{', '.join(places)}: " if address.is_cluster and places else ""
        lines.append(f"- {names}{fault.problem} {fault.remedy}")
    settings = [(fault.line, places) for fault, places in faults.items() if fault.line]
    if settings:
        lines.append("Write into redis.conf, for its next start:")
        lines += (f"    {line}" for line, _ in settings)
        lines.append("And set it now:")
        for line, places in settings:
            for host, _, port in (place.rpartition(":") for place in places):
                lines.append(
                    f"    redis-cli -h {host} -p {port}{' --tls' if address.is_tls else ''}"
                    f" CONFIG SET {line}"
                )
        lines.append(
            "A hosted server refuses CONFIG SET: in its console or parameter group, choose the"
            f" eviction policy {KEEPS} and persistence by AOF."
        )
    return "\n".join(lines)


def _remedy(address: StateAddress, error: Exception) -> str:
    if "MOVED" in type(error).__name__.upper():
        return "write redis+cluster:// or rediss+cluster://, as the server is a node of a Cluster"
    if remedy := tls_remedy(address, error):
        return remedy
    text = str(error).lower()
    remedy = next(
        (remedy for words, remedy in _REMEDIES if words in text),
        "start the server, or write its address",
    )
    return remedy.format(user=address.user or "default")


def _remarks(node: Any, info: Mapping[str, Any]) -> Iterator[str]:
    used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if most and used > 0.8 * most:
        yield (
            f"has {used / most:.0%} of its memory in use. When it is full, no requests are put into"
            " the queue: raise `maxmemory`, or delete a crawl with `comity frontier NAME --delete`"
        )
    if info.get("aof_last_write_status", "ok") != "ok":
        yield "failed to write its log when it last tried: look at the room on its disk"
    with suppress(RedisError):  # hosted servers often refuse CONFIG
        if node.config_get("appendfsync").get("appendfsync") == "no":
            yield "lets its system decide when its log is on disk: set `appendfsync everysec`"
