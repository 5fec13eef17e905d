"""Sessions that the operator declares for hosts (COMITY_SESSIONS, docs/automation.md).

A session has credentials, the host that gets them, and the moment when it began. Credentials come
from the environment or from files. They are never shown: no repr and no message contains them."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from comity.gate.fetching.reach import Reach, literal, reach_of
from comity.gate.fetching.store import Store
from comity.gate.http import Request
from comity.policies import PolicyError
from comity.policies.answers.request import Session
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import DEFAULT_PORTS

logger = logging.getLogger(__name__)

T = TypeVar("T")

KEYS = ("human_initiated", "cookies", "token", "bearer", "started_at", "insecure")
COOKIE_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 6265 section-4.1.1
SENDABLE = re.compile(r"[ -~]+")  # characters that every server accepts in a header field
MAX_SECRET = 16 * 1024  # octets; servers refuse longer header fields anyway


@dataclass(frozen=True, kw_only=True)
class DeclaredSession:
    """One session of COMITY_SESSIONS.

    Attributes:
        host: "example.com" for all ports, or "example.com:8080"; lower case, A-labels.
        human_initiated: True if a person started the session.
        insecure: True if the session may also go over http to other machines.
        started_at: The moment when the session began, with a time zone. None means unknown.
        cookies: Names and values of the cookies.
        token: The token; "": none.
        bearer: The bearer token; "": none.
    """

    host: str
    human_initiated: bool = False
    insecure: bool = False
    started_at: datetime | None = None
    cookies: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    token: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)

    @cached_property
    def facts(self) -> Session:
        """The facts about the session that policies may ask for, without its credentials."""
        credentials = {
            "cookie": any(value.strip('"') for _, value in self.cookies),
            "token": self.token,
            "bearer": self.bearer,
        }
        carries = frozenset(name for name, value in credentials.items() if value)
        return Session(
            human_initiated=self.human_initiated, carries=carries, started_at=self.started_at
        )

    @property
    def secret(self) -> bytes:
        """The credentials in one text. A session with other credentials is another session."""
        return json.dumps([sorted(self.cookies), self.token, self.bearer]).encode()


def may_send_secret(request: Request, *, insecure: bool) -> bool:
    """Return True if a secret may be sent with the request.

    The connection has to be private (https, or within this machine and through no proxy), unless
    the operator accepts all connections (`insecure`)."""
    parts = urlsplit(request.url)
    return (
        parts.scheme == "https"
        or insecure
        or (_is_this_machine(parts.hostname or "") and not request.meta.get("proxy"))
    )


def of_host(by_host: Mapping[str, T], url: str) -> T | None:
    """Return the value for the host and port of a URL, else that for all ports of the host.

    `by_host`: "example.com" or "example.com:8080" -> value."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or DEFAULT_PORTS.get(parts.scheme)
    name = f"[{host}]" if ":" in host else host
    value = by_host.get(f"{name}:{port}")
    return by_host.get(host) if value is None else value


def declared_session(host: str, members: object) -> DeclaredSession:
    """Read one session of COMITY_SESSIONS.

    PolicyError: the session is invalid, or its credentials cannot be read. The message contains no
    credentials."""
    if not isinstance(members, Mapping):
        raise PolicyError(f"is not a mapping: write some of {', '.join(KEYS)}")
    for key in members:
        if key not in KEYS:
            raise PolicyError(f"`{_printable(key)}` is unknown: write some of {', '.join(KEYS)}")
    session = DeclaredSession(
        host=host,
        human_initiated=_flag(members, "human_initiated"),
        insecure=_flag(members, "insecure"),
        started_at=_moment(members.get("started_at")),
        cookies=_cookies(members.get("cookies")),
        token=read_secret("token", members["token"]) if "token" in members else "",
        bearer=read_secret("bearer", members["bearer"]) if "bearer" in members else "",
    )
    if not session.facts.carries:
        raise PolicyError("carries nothing: write cookies, token or bearer")
    return session


def _printable(text: object) -> str:
    return printable(str(text).encode("utf-8", "replace"))


def _flag(members: Mapping[str, object], key: str) -> bool:
    value = members.get(key, False)
    if not isinstance(value, bool):
        raise PolicyError(f"`{key}` is neither true nor false: write true or false")
    return value


def _moment(value: object) -> datetime | None:
    if value is None:
        return None
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        is_past = moment <= datetime.now(UTC)
    except (TypeError, ValueError):  # no date, or one without an offset
        raise PolicyError(
            f"`started_at` `{_printable(value)}` is not a moment: write it with its offset, e.g."
            ' "2027-01-31T08:00:00+01:00"'
        ) from None
    if not is_past:
        raise PolicyError(
            f"`started_at` `{_printable(value)}` is in the future: write when the session began"
        )
    return moment


def _cookies(declared: object) -> tuple[tuple[str, str], ...]:
    """Return names and values of cookies.

    `declared`: {"name": "env:VALUE"}, or the reference of a whole Cookie field: "file:cookies.txt".
    None means that there are no cookies."""
    if declared is None:
        return ()
    if isinstance(declared, Mapping):
        pairs = [(str(name), read_secret("cookies", value)) for name, value in declared.items()]
    else:
        crumbs = (
            crumb.partition("=")
            for crumb in read_secret("cookies", declared).split(";")
            if crumb.strip()
        )
        pairs = [(name.strip() if equals else "", value.strip()) for name, equals, value in crumbs]
    for name, value in pairs:
        if not COOKIE_NAME.fullmatch(name):
            raise PolicyError(
                "`cookies` has an invalid name: write name=value, with `;` between cookies"
            )
        if ";" in value:
            raise PolicyError(f"`cookies.{name}` has a `;`, which no cookie can carry")
    return tuple(pairs)


def read_secret(key: str, reference: object) -> str:
    """Return the secret in an environment variable (env:NAME) or in a file (file:PATH).

    `key`: the member of the setting, for messages. White space around the secret is removed,
    because files end with a line break.
    PolicyError: the secret cannot be read, or no header field can carry it."""
    source, _, name = str(reference).partition(":") if isinstance(reference, str) else ("", "", "")
    if source == "env" and name:
        secret = os.environ.get(name)
        if secret is None:
            raise PolicyError(
                f"`{key}`: there is no environment variable `{_printable(name)}`: set it"
            )
    elif source == "file" and name:
        try:
            with Path(name).expanduser().open("rb") as file:
                secret = file.read(MAX_SECRET + 1).decode("latin-1")
        except (OSError, ValueError, RuntimeError) as error:
            cause = error.strerror if isinstance(error, OSError) else "the path is invalid"
            raise PolicyError(f"`{key}`: `{_printable(name)}` cannot be read: {cause}") from None
    else:
        raise PolicyError(f"`{key}` does not name a place: write env:VARIABLE or file:PATH")
    secret = secret.strip(" \t\r\n")
    if not secret or len(secret) > MAX_SECRET:
        raise PolicyError(
            f"`{key}`: `{_printable(name)}` is {'longer than any field' if secret else 'empty'}"
        )
    if not SENDABLE.fullmatch(secret):
        raise PolicyError(
            f"`{key}`: `{_printable(name)}` has a line break, or another character that no field"
            " can carry"
        )
    return secret


def _is_this_machine(host: str) -> bool:
    address = literal(host)
    return reach_of(address) is Reach.LOOPBACK if address is not None else host == "localhost"


class Sessions:
    """The sessions of a crawl.

    Attributes:
        are_sent: True if there are sessions, and FieldsMiddleware sends them.
    """

    def __init__(self, declared: Iterable[DeclaredSession], store: Store) -> None:
        self._sessions = {session.host: _with_start(session, store) for session in declared}
        self._held_back: set[str] = set()  # hosts with a logged warning
        self.are_sent = False

    def send(self) -> None:
        """Note that FieldsMiddleware is on, and sends the sessions."""
        self.are_sent = bool(self._sessions)

    def for_request(self, request: Request) -> DeclaredSession | None:
        """Return the session that a request may carry, or None without a session."""
        session = of_host(self._sessions, request.url)
        if session is None or may_send_secret(request, insecure=session.insecure):
            return session
        if session.host not in self._held_back:
            self._held_back.add(session.host)
            logger.warning(
                "COMITY_SESSIONS `%(host)s` is not sent over http to another machine or a proxy:"
                ' write "insecure": true to send it all the same',
                {"host": session.host},
            )
        return None


def _with_start(session: DeclaredSession, store: Store) -> DeclaredSession:
    """Return the session with the moment when it began.

    If the moment is not declared, it is the first use of the session, which the store remembers. If
    the store fails, the moment stays unknown."""
    if session.started_at is not None:
        return session
    try:
        return replace(
            session, started_at=store.session_began(session.host, session.secret, datetime.now(UTC))
        )
    except OSError as error:
        logger.warning(
            "%(error)s; the session for %(host)s counts as too old wherever that matters",
            {"error": error, "host": session.host},
        )
        return session
