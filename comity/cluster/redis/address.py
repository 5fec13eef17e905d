"""The address of a server of Redis or Valkey, and the names of the keys of a crawl."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from comity.cluster.address import PASSWORD, SETTING, check_name
from comity.policies import PolicyError

SCHEMES = ("redis", "rediss", "redis+cluster", "rediss+cluster")
REMEDY = (
    "write redis://HOST:PORT/DB, rediss:// for TLS, or redis+cluster:// or rediss+cluster:// for a"
    " Cluster"
)
PORT = 6379
MAX_SHARDS = 4096
HOST = re.compile(r"[A-Za-z0-9_.:-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateAddress:
    """The address of a server, and the name of a crawl. As a text it has no user and password.

    Attributes:
        crawl: The name of the crawl.
        host: The host name or address of the server.
        port: The port of the server.
        db: The number of the database.
        is_tls: True if the connection uses TLS.
        is_cluster: True if the server is a node of a Cluster.
        user: The user, or None.
        password: The password, or None.
    """

    crawl: str
    host: str
    port: int = PORT
    db: int = 0
    is_tls: bool = False
    is_cluster: bool = False
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str, crawl: str, environ: Mapping[str, str] = os.environ) -> Self:
        """Parse the URL of COMITY_STATE.

        PolicyError: the URL or the crawl's name is invalid. It never quotes the URL, which may hold
        a password."""
        check_name(crawl)
        try:
            parts = urlsplit(url)
            port = PORT if parts.port is None else parts.port
            host, user, password = parts.hostname or "", parts.username, parts.password
        except ValueError:
            raise PolicyError(f"{SETTING}: this is not a URL: {REMEDY}") from None
        if parts.scheme not in SCHEMES:
            raise PolicyError(f"{SETTING}: its scheme is not one of {', '.join(SCHEMES)}: {REMEDY}")
        is_cluster = parts.scheme.endswith("+cluster")
        if not HOST.fullmatch(host) or not port:
            raise PolicyError(f"{SETTING}: it names no host: {REMEDY}")
        if parts.query or parts.fragment:
            raise PolicyError(
                f"{SETTING}: remove everything after the number of the database: {REMEDY}"
            )
        db = parts.path.removeprefix("/") or "0"
        if not re.fullmatch(r"[0-9]{1,6}", db):
            raise PolicyError(f"{SETTING}: its path is not the number of a database: {REMEDY}")
        if is_cluster and int(db):
            raise PolicyError(f"{SETTING}: a Cluster has only database 0: leave the path out")
        return cls(
            crawl=crawl,
            host=host,
            port=port,
            db=int(db),
            is_tls=parts.scheme.startswith("rediss"),
            is_cluster=is_cluster,
            user=unquote(user) if user else None,
            password=unquote(password) if password else environ.get(PASSWORD) or None,
        )

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = f"redis{'s' if self.is_tls else ''}{'+cluster' if self.is_cluster else ''}"
        return f"{scheme}://{host}:{self.port}{'' if self.is_cluster else f'/{self.db}'}"

    @property
    def prefix(self) -> str:
        """Return the prefix of the keys of the crawl as a whole."""
        return f"comity:{{{self.crawl}}}"

    def shard_key(self, shard: int, run: int = 1) -> str:
        """Return the prefix of all keys of a shard.

        `run`: 1 if the crawl has begun once, 2 after it began anew, and so on."""
        return (
            f"comity:{{{self.crawl}:{shard}}}"
            if run == 1
            else f"comity:{{{self.crawl}:{run}:{shard}}}"
        )

    def client_options(self, patience: float) -> dict[str, Any]:
        """Return arguments for the clients of redis-py. `patience`: seconds to wait for answers."""
        options: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "username": self.user,
            "password": self.password,
            "ssl": self.is_tls,
            "socket_timeout": patience,
            "socket_connect_timeout": patience,
            "protocol": 2,
        }
        if self.is_tls:
            # The default differs between versions of redis-py.
            options |= {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
        return options if self.is_cluster else {**options, "db": self.db}
