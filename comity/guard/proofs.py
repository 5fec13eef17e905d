"""Proofs of crawlers' names by signatures (Web Bot Auth), and the table of who asks.

    proofs = Proofs({"examplebot": "https://bot.example.org"}, KeyDirectories())
    guard = Guard("https://example.com", Path("policies"), proofs=proofs)

A signature proves that its sender has a key of a directory, and nothing more: anybody can publish a
directory. So the site says which directory proves which name."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from threading import Lock
from typing import NamedTuple, Protocol

from comity.extras import required
from comity.forks import call_in_forks
from comity.guard.nonces import USED, Nonces, UsedNonces
from comity.policies.agent import PRODUCT_TOKEN
from comity.policies.answers.errors import PolicyError
from comity.signatures.message import KeyAnswer, Outcome, Signature, SignedRequest

MAX_ROWS = 1000  # rows of the table
ASK_AGAIN = 60  # seconds to wait for a directory that cannot be had
DAY = 24 * 3600


class Proof(enum.Enum):
    """What is known about the name of a crawler in a request."""

    PROVED = "proved"  # it is signed by a key of the name's directory
    SIGNED = "signed"  # it is signed by a key of a directory that the site gives no name
    CLAIMED = "claimed"  # it has no signature, or one that cannot be verified
    INVALID = "invalid"  # it has a wrong signature


class AgentRow(NamedTuple):
    """A row of the table of agents."""

    name: str
    """The product token; "" for crawlers that no file names."""
    proof: Proof
    """What is known about the name."""
    url: str
    """The key directory of a verified signature; "" if there is none."""


class Failure(NamedTuple):
    """A claimed name without the proof that the site asks for."""

    rule: str
    """"comity.proof", "comity.proof-used" or "comity.proof-unknown"."""
    detail: str
    """The reason, for people."""
    wait: int = 0
    """The seconds to wait."""


class Directories(Protocol):
    """The public keys of crawlers: `comity.gate.key_directories.KeyDirectories`."""

    def find(self, url: str, keyid: str, *, is_listed: bool) -> KeyAnswer:
        """Return the key of a directory, at once. It may be called by several threads.

        `is_listed`: True for a directory that the site lists. False for one that a client names."""

    def expect(self, urls: Collection[str]) -> None:
        """Fetch these directories soon, unless they are known. It is called for each request."""


class Proofs:
    """The names that a site wants proved."""

    def __init__(
        self,
        agents: Mapping[str, str | Iterable[str]],
        directories: Directories,
        *,
        required_names: Iterable[str] | None = None,
        discovers: bool = False,
        needs_nonce: bool = False,
        max_lifetime: int = DAY,
        nonces: UsedNonces | None = None,
    ) -> None:
        """Take the key directories that prove names.

        Arguments:
            agents: Product token -> URL of its key directory, or several URLs. A URL without a path
                means the well-known directory of the host.
            directories: The source of the keys.
            required_names: The names that need a proof. None means all names of `agents`. () only
                observes.
            discovers: True to fetch directories that clients name too, for the table.
            needs_nonce: True if a signature without a nonce proves nothing.
            max_lifetime: The longest validity of a signature, in seconds.
            nonces: The nonces that were used, such as `SharedNonces`. None: in memory.

        PolicyError: an argument is invalid, or the extra is not installed."""
        with required("Proofs", "signatures", PolicyError):
            from comity.signatures.verifier import MAX_URL, InvalidError, directory_url, verify
        self.urls: dict[str, frozenset[str]] = {}
        for name, value in agents.items():
            if not PRODUCT_TOKEN.fullmatch(name):
                raise PolicyError(
                    f"`{name}` is not a product token: use letters, digits, `_` and `-` only"
                )
            try:
                urls = [value] if isinstance(value, str) else list(value)
                self.urls[name.lower()] = frozenset(directory_url((url, {})) for url in urls)
            except InvalidError:
                raise PolicyError(
                    f"the key directory of `{name}` is not an https URL of at most {MAX_URL}"
                    " characters: write e.g. https://bot.example.org"
                ) from None
        names = self.urls if required_names is None else map(str.lower, required_names)
        self.required = frozenset(names)
        if unknown := self.required - self.urls.keys():
            raise PolicyError(
                f"`{min(unknown)}` has no key directory: add it to `agents`, with its URL"
            )
        if max_lifetime < 1:
            raise PolicyError(f"max_lifetime `{max_lifetime}` is too short: write 1 or more")
        self._listed = frozenset[str]().union(*self.urls.values())
        self._directories = directories
        self._discovers = discovers
        self._needs_nonce = needs_nonce
        self._max_lifetime = max_lifetime
        self._verify = verify
        self._renew_lock()
        call_in_forks(self._renew_lock)
        self._nonces = Nonces() if nonces is None else nonces

    def _renew_lock(self) -> None:
        self._lock = Lock()

    def check(self, request: SignedRequest, now: float) -> tuple[Signature, ...]:
        """Verify the signatures of a request. Each nonce counts as used from now on.

        Several threads may call it. `now`: seconds since the epoch."""
        self._directories.expect(self._listed)
        signatures = self._verify(request, self._find, now, max_lifetime=self._max_lifetime)
        with self._lock:
            return tuple(self._check_nonce(signature, now) for signature in signatures)

    def failure(self, names: Iterable[str], signatures: tuple[Signature, ...]) -> Failure | None:
        """Return why the first unproved name of a request may not be used. None: all may.

        `names`: the product tokens that the request claims."""
        for name in names:
            if name in self.required and self.proof_of(name, signatures) is not Proof.PROVED:
                return self._failure(name, signatures)
        return None

    def proof_of(self, name: str, signatures: tuple[Signature, ...]) -> Proof:
        """Return what the signatures of a request prove about a name."""
        outcomes = {signature.outcome for signature in signatures}
        verified = {each.url for each in signatures if each.outcome is Outcome.VERIFIED}
        if verified & self.urls.get(name, frozenset()):
            return Proof.PROVED
        if verified:
            return Proof.SIGNED
        return Proof.INVALID if Outcome.INVALID in outcomes else Proof.CLAIMED

    def _find(self, url: str, keyid: str) -> KeyAnswer:
        is_listed = url in self._listed
        if not (is_listed or self._discovers):
            return KeyAnswer(None, f"{url} is not a key directory that this site lists")
        return self._directories.find(url, keyid, is_listed=is_listed)

    def _check_nonce(self, signature: Signature, now: float) -> Signature:
        if signature.outcome is not Outcome.VERIFIED:
            return signature
        if not signature.nonce:
            if not self._needs_nonce:
                return signature
            return signature._replace(outcome=Outcome.INVALID, problem="it has no nonce")
        # Only its digest is kept: clients choose the lengths. `repr` keeps the parts apart.
        parts = signature.url, signature.keyid, signature.nonce
        key = sha256(repr(parts).encode()).digest()
        # One pool for each listed directory, so that no other sender can fill it. "": all others.
        pool = signature.url if signature.url in self._listed else ""
        problem = self._nonces.use(pool, key, signature.expires, now)
        if not problem:
            return signature
        if problem == USED:
            return signature._replace(outcome=Outcome.INVALID, problem=problem)
        return signature._replace(outcome=Outcome.UNVERIFIED, problem=problem, wait=ASK_AGAIN)

    def _failure(self, name: str, signatures: tuple[Signature, ...]) -> Failure:
        urls = self.urls[name]
        own = [signature for signature in signatures if signature.url in urls]
        named = f"the name `{name}` has to be proved by a signature of {' or '.join(sorted(urls))}"
        if not signatures:
            return Failure("comity.proof", f"{named}: the request has no signature")
        used = [signature for signature in own if signature.problem == USED]
        if used:
            return Failure("comity.proof-used", f"{named}: {USED}", 1)
        unknown = [signature for signature in own if signature.outcome is Outcome.UNVERIFIED]
        if unknown:
            wait = max(signature.wait for signature in unknown) or ASK_AGAIN
            return Failure("comity.proof-unknown", f"{named}: {unknown[0].problem}", wait)
        # The answer tells no client about a directory that the client has named.
        problems = [
            signature.problem
            if signature.url in urls or not signature.url
            else f"the signature is of {signature.url}"
            for signature in own or signatures
        ]
        return Failure("comity.proof", f"{named}: {problems[0]}")


class AgentTable(Counter[AgentRow]):
    """The numbers of requests by row. After MAX_ROWS rows, new ones are not counted."""

    def __setitem__(self, row: AgentRow, number: int) -> None:
        if row in self or len(self) < MAX_ROWS:
            super().__setitem__(row, number)


def rows_of(
    proofs: Proofs | None, names: Iterable[str], signatures: tuple[Signature, ...]
) -> Iterator[AgentRow]:
    """Yield the rows of a request: one for each name that it claims."""
    verified = sorted(each.url for each in signatures if each.outcome is Outcome.VERIFIED)
    for name in names or ("",):
        proof = Proof.CLAIMED if proofs is None else proofs.proof_of(name, signatures)
        yield AgentRow(name, proof, verified[0] if verified else "")
