"""Policy files on the server of the shared state, as `PolicyStore` keeps them on one machine.

It blocks, as PolicyStore does: PolicyFiles calls it in a thread of its own. The files of one origin
are saved all or none. So are the files of several origins, except in a Cluster, where they are on
several nodes."""

from __future__ import annotations

import hashlib
import json
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from redis import Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException, RedisError
from redis.retry import Retry

from comity.cluster.address import name_as_key
from comity.cluster.records import ACTION, KEPT, SESSION, TERM, YEAR, pack_file, unpack_file
from comity.cluster.redis.address import StateAddress
from comity.cluster.redis.scripts import Script, script
from comity.cluster.steps.line import PATIENCE
from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.store import DIGEST_ROUNDS, REFERENCES, UNREADABLE
from comity.policies.syntax.printable import printable

SITE, BODY, CLAIM = b"comity:site:", b"comity:body:", b"comity:claim:"
FIRST_TAKEN, SESSIONS = b"comity:taken:", b"comity:sessions:"
ACTIONS, SALT = "comity:actions", "comity:salt"
LIFETIME = KEPT * 1000  # milliseconds

_SAVE, _TOOK_DOWN, _CLAIM, _GIVE_BACK = (
    script(f"site {name}") for name in ("save", "took_down", "claim", "give_back")
)
_ACTION, _SESSION = script("site action"), script("site session")
_FAILURES = (RedisError, RedisClusterException, OSError, *UNREADABLE)


class RedisStore:
    """Policy files, and the entries that belong to them, for all crawls on a server.

    OSError: a call fails for now."""

    is_shared = True

    def __init__(self, address: StateAddress, *, patience: float = PATIENCE) -> None:
        """`patience`: seconds that a call waits for its answer."""
        self.address = address
        options = address.client_options(patience)
        if not address.is_cluster:
            options["retry"] = Retry(NoBackoff(), 1)  # the server may have been started anew
        # The clients of both kinds have the same methods, but no common type. The client of a
        # Cluster connects at once.
        self._connect: Callable[[], Any] = lambda: (RedisCluster if address.is_cluster else Redis)(
            **options
        )
        self._client: Any = None
        self._token = secrets.token_hex(8)  # identifies its claims
        self._claims: set[str] = set()  # origins

    @contextmanager
    def _asking(self, verb: str) -> Iterator[Any]:
        """Yield the client. `verb`: "read" or "written", for the message of a failure."""
        try:
            if self._client is None:
                self._client = self._connect()
            yield self._client
        except _FAILURES as error:
            raise OSError(f"{self.address} cannot be {verb}: {printable(str(error))}") from None

    def load(self, origin: str) -> dict[str, PolicyFile]:
        with self._asking("read") as client:
            records = {
                path.decode(): json.loads(value.partition(b"\n")[2])
                for path, value in client.hgetall(SITE + name_as_key(origin)).items()
            }
            digests = sorted({record["body"] for record in records.values() if record.get("body")})
            pipeline = client.pipeline(transaction=False)
            for digest in digests:
                pipeline.get(BODY + digest.encode())
            bodies = dict(zip(digests, pipeline.execute() if digests else (), strict=True))
            return {path: unpack_file(record, bodies) for path, record in records.items()}

    def save(self, origin: str, files: Mapping[str, PolicyFile]) -> None:
        """Save the files of one origin, as `save_sites` does."""
        self.save_sites({origin: files})

    def save_sites(self, sites: Mapping[str, Mapping[str, PolicyFile]]) -> None:
        with self._asking("written") as client:
            bodies = {
                hashlib.sha256(file.copy.body).hexdigest(): file.copy.body
                for files in sites.values()
                for file in files.values()
                if file.copy and file.copy.body
            }
            self._save_bodies(client, bodies)
            # In a Cluster no transaction goes over several nodes.
            pipeline = client.pipeline(transaction=not self.address.is_cluster)
            for origin, files in sites.items():
                rows = [
                    part
                    for path, file in files.items()
                    for part in (path.encode(), pack_file(file))
                ]
                key = SITE + name_as_key(origin)
                pipeline.execute_command("EVAL", _SAVE.text, 1, key, LIFETIME, REFERENCES, *rows)
            pipeline.execute()

    def _save_bodies(self, client: Any, bodies: Mapping[str, bytes]) -> None:
        """Save bodies. They last longer than all records that refer to them."""
        if not bodies:
            return
        pipeline = client.pipeline(transaction=False)
        for digest in bodies:
            pipeline.pexpire(BODY + digest.encode(), 3 * LIFETIME)
        missing = [
            digest
            for digest, is_there in zip(bodies, pipeline.execute(), strict=True)
            if not is_there
        ]
        if missing:
            pipeline = client.pipeline(transaction=False)
            for digest in missing:
                pipeline.set(
                    BODY + digest.encode(), zlib.compress(bodies[digest], 6), px=3 * LIFETIME
                )
            pipeline.execute()

    def first_taken(self, url: str, uses: Iterable[str], moment: datetime) -> dict[str, datetime]:
        names = list(uses)
        with self._asking("written") as client:
            key = FIRST_TAKEN + name_as_key(url)
            pipeline = client.pipeline(transaction=False)
            for use in names:
                pipeline.hsetnx(key, use, repr(moment.timestamp()))
                pipeline.hget(key, use)
            pipeline.expire(key, TERM)
            firsts = pipeline.execute()[1::2] if names else []
            return {use: _moment(first) for use, first in zip(names, firsts, strict=True)}

    def requests_action(self, url: str, action: str, sha256: str, moment: datetime) -> bool:
        field = b"\n".join(map(name_as_key, (action, sha256, url)))
        keep = TERM if action == "take-down" else ACTION
        with self._asking("written") as client:
            return bool(
                self._run(client, _ACTION, ACTIONS, field, repr(moment.timestamp()), keep, TERM)
            )

    def take_downs(self) -> list[tuple[str, datetime]]:
        """Return the URLs that sites request to take down, with the last time, oldest first.

        URLs that were taken down are left out."""
        moments: dict[str, datetime] = {}
        with self._asking("read") as client:
            for field, value in client.hgetall(ACTIONS).items():
                action, _, url = field.decode().split("\n", 2)
                if action == "take-down" and b" " not in value:
                    moment = _moment(value)
                    moments[url] = max(moments.get(url, moment), moment)
        return sorted(moments.items(), key=lambda item: (item[1], item[0]))

    def took_down(self, urls: Iterable[str], moment: datetime) -> None:
        """Note that the URLs are taken down, all of them or none. Requests after `moment` stay."""
        with self._asking("written") as client:
            self._run(
                client, _TOOK_DOWN, ACTIONS, repr(moment.timestamp()), *map(name_as_key, urls)
            )

    def session_began(self, host: str, secret: bytes, moment: datetime) -> datetime:
        with self._asking("written") as client:
            client.set(SALT, secrets.token_bytes(32), nx=True)
            client.expire(SALT, SESSION + YEAR)  # longer than the digests that use it
            digest = hashlib.pbkdf2_hmac("sha256", secret, client.get(SALT), DIGEST_ROUNDS)
            key = SESSIONS + name_as_key(host)
            return _moment(
                self._run(client, _SESSION, key, digest, repr(moment.timestamp()), SESSION)
            )

    def claims_fetch(self, origin: str, seconds: float) -> bool:
        """Return True if no other process fetches the origin's files now.

        Then load them again, because another process may have saved them before. Other processes
        may fetch them after so many seconds, unless the claim is renewed, or when it is given back.
        """
        with self._asking("written") as client:
            milliseconds = max(1, round(seconds * 1000))
            has_it = bool(
                self._run(client, _CLAIM, CLAIM + name_as_key(origin), self._token, milliseconds)
            )
        if has_it:
            self._claims.add(origin)
        return has_it

    def gives_back(self, origin: str) -> None:
        """Give back the claim: the files are saved, or the fetch failed.

        If another process has claimed them by now, its claim stays."""
        if origin in self._claims:
            self._claims.discard(origin)
            with self._asking("written") as client:
                self._run(client, _GIVE_BACK, CLAIM + name_as_key(origin), self._token)

    def _run(self, client: Any, script: Script, key: str | bytes, *arguments: Any) -> Any:
        return client.execute_command("EVAL", script.text, 1, key, *arguments)

    def close(self) -> None:
        for origin in list(self._claims):
            with suppress(OSError):
                self.gives_back(origin)
        if self._client is not None:
            with suppress(*_FAILURES):
                self._client.close()
            self._client = None


def _moment(seconds: bytes) -> datetime:
    return datetime.fromtimestamp(float(seconds.partition(b" ")[0]), UTC)
