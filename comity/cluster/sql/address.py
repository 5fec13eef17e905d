"""The address of a database with the shared state of a crawl, and how its crawls are named."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import unquote, urlsplit

from comity.cluster.address import PASSWORD, SETTING, check_name
from comity.policies import PolicyError
from comity.policies.syntax.printable import printable

PORT = 5432
SCHEMES = ("postgresql", "postgres")
REMEDY = "write postgresql://USER@HOST:PORT/DATABASE"
FILE_REMEDY = "write sqlite:///PATH, with a fourth `/` for a path from the root"
# Parameters of the URL that libpq takes for TLS, and those for sockets of this machine.
PARAMETERS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "host")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlAddress:
    """The address of a database, and the name of a crawl. As a text it has no user and password.

    Attributes:
        crawl: The name of the crawl.
        path: The file of SQLite; None: a server of PostgreSQL.
        host: The host name or address of the server, or the folder of its socket.
        port: The port of the server.
        database: The name of the database.
        user: The user, or None.
        password: The password, or None.
        parameters: Further parameters of the connection.
    """

    is_cluster: ClassVar[bool] = False

    crawl: str
    path: Path | None = None
    host: str = ""
    port: int = PORT
    database: str = ""
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, url: str, crawl: str, environ: Mapping[str, str] = os.environ) -> Self:
        """Parse the URL of COMITY_STATE.

        PolicyError: the URL or the crawl's name is invalid. It never quotes the URL, which may hold
        a password."""
        check_name(crawl)
        if url[:7].lower() == "sqlite:":
            return cls(crawl=crawl, path=_path(url))
        try:
            parts = urlsplit(url)
            port = PORT if parts.port is None else parts.port
            host, user, password = parts.hostname or "", parts.username, parts.password
            parameters = dict(pair.split("=", 1) for pair in parts.query.split("&") if parts.query)
        except ValueError:
            raise PolicyError(f"{SETTING}: this is not a URL: {REMEDY}") from None
        if parts.scheme not in SCHEMES:
            raise PolicyError(f"{SETTING}: its scheme is not postgresql or sqlite: {REMEDY}")
        if unknown := sorted(parameters.keys() - set(PARAMETERS)):
            raise PolicyError(
                f"{SETTING}: remove the parameter `{printable(unknown[0])}`: comity takes only"
                f" {', '.join(PARAMETERS)}"
            )
        parameters = {name: unquote(value) for name, value in parameters.items()}
        host = parameters.pop("host", host)
        if not host or not port or parts.fragment:
            raise PolicyError(f"{SETTING}: it names no host: {REMEDY}")
        database = unquote(parts.path.removeprefix("/"))
        if not re.fullmatch(r"[^/\x00]{1,63}", database):
            raise PolicyError(f"{SETTING}: its path is not the name of a database: {REMEDY}")
        return cls(
            crawl=crawl,
            host=host,
            port=port,
            database=database,
            user=unquote(user) if user else None,
            password=unquote(password) if password else environ.get(PASSWORD) or None,
            parameters=parameters,
        )

    def __str__(self) -> str:
        if self.path is not None:
            return f"sqlite:///{printable(str(self.path))}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"postgresql://{printable(host)}:{self.port}/{printable(self.database)}"

    @property
    def prefix(self) -> str:
        """Return the name of the crawl as a whole, in calls."""
        return self.crawl

    def shard_key(self, shard: int, run: int = 1) -> str:
        """Return the name of the queue of a run. A database has one shard."""
        return f"{self.crawl} {run}"

    def client_options(self) -> dict[str, Any]:
        """Return arguments for psycopg.connect."""
        return {
            "host": self.host,
            "port": self.port,
            "dbname": self.database,
            "user": self.user,
            "password": self.password,
            **self.parameters,
        }


def _path(url: str) -> Path:
    path = url[10:]
    if url[7:10] != "///" or not path or "\0" in path or "?" in path or path == ":memory:":
        raise PolicyError(f"{SETTING}: this is not the path of a file: {FILE_REMEDY}")
    return Path(unquote(path)).expanduser().absolute()
