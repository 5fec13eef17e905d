"""The check of the server of the shared state. A crawl can rely on one that keeps what it has acknowledged, and refuses what it
has no room for instead of forgetting something else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from redis import Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, RedisClusterException, RedisError
from redis.retry import Retry

from comity.crawler.redis_state.address import PASSWORD, SETTING, StateAddress
from comity.crawler.redis_state.connection import PATIENCE
from comity.crawler.redis_state.scripts import DATA_VERSION
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

OLDEST = (6, 2)
VERSION = "comity:version"  # of what all crawls share; that of a crawl stands in the crawl


def check_server(address: StateAddress) -> list[str]:
    """Return what is worth a remark. PolicyError, with what to do about it, where the crawl cannot rely on the server."""
    remarks: list[str] = []
    try:
        client = _client(address)
        try:
            for name, node in _nodes(address, client):
                remarks += _checked(name, node)
            if (version := client.get(VERSION)) is None:  # it may be full by now, and the crawl goes on all the same
                client.set(VERSION, DATA_VERSION, nx=True)
                version = client.get(VERSION)
        finally:
            client.close()
    except (AuthenticationError, AuthorizationError) as error:
        raise PolicyError(
            f"{SETTING}: {address} refuses user or password ({printable(str(error))}): set the environment variable {PASSWORD}"
        ) from None
    except (RedisError, RedisClusterException, OSError, ValueError, TypeError) as error:
        remedy = "start the server, or write where it is"
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            remedy = "let SSL_CERT_FILE name the certificates to trust, and write the server's name as its certificate has it"
        raise PolicyError(f"{SETTING}: {address} cannot be used ({printable(str(error))}): {remedy}") from None
    if int(version) != DATA_VERSION:
        raise PolicyError(
            f"{SETTING}: {address} has data of version {int(version)}, and this comity knows version {DATA_VERSION}: let all"
            " workers have the same comity, or take another database"
        )
    return remarks


def _client(address: StateAddress) -> Any:
    options = address.client_options(PATIENCE)
    if address.is_cluster:
        return RedisCluster(**options)
    return Redis(**options, retry=Retry(NoBackoff(), 0))


def _nodes(address: StateAddress, client: Any) -> Iterator[tuple[str, Any]]:
    if not address.is_cluster:
        yield str(address), client
        return
    for node in client.get_primaries():
        yield f"{address}, node {node.host}:{node.port},", client.get_redis_connection(node)


def _checked(name: str, node: Any) -> list[str]:
    """Return what is worth a remark of one node. PolicyError as of `check_server`."""
    info: Mapping[str, Any] = node.info("server") | node.info("memory") | node.info("persistence")
    version = tuple(map(int, re.findall(r"\d+", str(info["redis_version"]))[:2]))
    if version < OLDEST:
        raise PolicyError(f"{SETTING}: {name} is Redis {info['redis_version']}: take Redis 6.2 or later, or Valkey")
    policy, most = str(info["maxmemory_policy"]), int(info["maxmemory"])
    if policy != "noeviction":
        raise PolicyError(
            f"{SETTING}: {name} forgets what it has acknowledged when its memory is full (maxmemory-policy {policy}): set"
            " `maxmemory-policy noeviction`"
        )
    if not most:
        raise PolicyError(
            f"{SETTING}: {name} takes what memory there is, until the machine ends it: set `maxmemory`, e.g. to half of what"
            " the machine has"
        )
    if not int(info["aof_enabled"]):
        raise PolicyError(f"{SETTING}: {name} writes no log, so a restart would lose requests: set `appendonly yes`")
    return list(_remarks(name, node, info, most))


def _remarks(name: str, node: Any, info: Mapping[str, Any], most: int) -> Iterator[str]:
    used = int(info["used_memory"])
    if used > 0.8 * most:
        yield f"{name} has {used / most:.0%} of its memory in use: when it is full, nothing is put into the queue any more"
    if info.get("aof_last_write_status", "ok") != "ok":
        yield f"{name} could not write its log when it last tried: its disk may be full"
    with suppress(RedisError):  # servers of others often do not tell
        if node.config_get("appendfsync").get("appendfsync") == "no":
            yield f"{name} leaves it to its system when its log is on disk: set `appendfsync everysec`"
