"""Names of crawlers that a site wants proved. No server: the clock is the test's."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from http_message_signatures import HTTPMessageSigner, algorithms
from hypothesis import example, given
from hypothesis import strategies as st

from comity.guard import AgentRow, Answer, Guard, Incoming, Pass, Proof, Proofs, SharedNonces
from comity.guard.nonces import TOO_MANY, USED, Nonces, UsedNonces
from comity.guard.proofs import MAX_ROWS, AgentTable
from comity.policies import PolicyError
from comity.signatures import WELL_KNOWN
from comity.signatures.keys import thumbprint
from comity.signatures.message import KeyAnswer, Outcome, SignedRequest
from comity.signatures.one_key import OneKey
from comity.signatures.signer import LIFETIME
from comity.signatures.verifier import MAX_URL
from tests.signatures.vectors import AGENT_URL, NOW, new_key, signer
from tests.test_forks import in_fork

pytestmark = pytest.mark.requirement("BOT-2")

ORIGIN = "https://example.com"
BOT = "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://bot.example.org)"
OTHER = "otherbot/2"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
FILES = {"/robots.txt": b"User-agent: namedbot\nDisallow: /private/\n"}
DIRECTORY = AGENT_URL + WELL_KNOWN
OTHER_URL = "https://other.example/keys.json"
NAMES = {"ExampleBot": AGENT_URL, "otherbot": (OTHER_URL, "https://second.example")}


class Directories:
    """Directories with the key of their number. The keys of a URL of `unknown` are not known."""

    def __init__(self) -> None:
        self.expected: frozenset[str] = frozenset()
        self.asked: list[tuple[str, bool]] = []
        self.unknown: set[str] = set()
        self.numbers = {DIRECTORY: 1, OTHER_URL: 2, "https://evil.example" + WELL_KNOWN: 3}

    def expect(self, urls: Collection[str]) -> None:
        self.expected = frozenset(urls)

    def find(self, url: str, keyid: str, *, is_listed: bool) -> KeyAnswer:
        self.asked.append((url, is_listed))
        if url in self.unknown:
            return KeyAnswer(None, f"key directory {url}: HTTP status 500", 40)
        key = new_key(self.numbers.get(url, 9)).public_key()
        return KeyAnswer(key if thumbprint(key) == keyid else None)


class Clock:
    def __init__(self) -> None:
        self.now = float(NOW)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def directories() -> Directories:
    return Directories()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def new_guard(directories: Directories, clock: Clock) -> Callable[..., Guard]:
    def make(**options: Any) -> Guard:
        proofs = Proofs(NAMES, directories, **options)
        return Guard(ORIGIN, FILES, proofs=proofs, clock=clock)

    return make


@pytest.fixture
def guard(new_guard: Callable[..., Guard]) -> Guard:
    return new_guard()


def signed(
    number: int = 1, url: str = AGENT_URL, *, to: str = ORIGIN, at: float = NOW
) -> dict[str, str]:
    return {name.lower(): value for name, value in signer(number, url, at).fields(to).items()}


def ask(guard: Guard, fields: dict[str, str], user_agent: str = BOT, target: str = "/") -> Any:
    return guard.check(Incoming("GET", target, {"user-agent": user_agent, **fields}))


def told(checked: Pass | Answer) -> tuple[int, str]:
    if isinstance(checked, Pass):
        return 200, ""
    return checked.status, json.loads(checked.body)["rule"]


def detail(checked: Any) -> str:
    text: str = json.loads(checked.body)["source"]["text"]
    return text


def test_a_signature_by_the_directory_of_the_name_proves_it(guard: Guard) -> None:
    assert told(ask(guard, signed())) == (200, "")
    assert guard.agents == {AgentRow("examplebot", Proof.PROVED, DIRECTORY): 1}
    assert not guard.refused


def test_each_directory_of_a_name_proves_it(guard: Guard, directories: Directories) -> None:
    directories.numbers["https://second.example" + WELL_KNOWN] = 4
    assert told(ask(guard, signed(2, OTHER_URL), OTHER)) == (200, "")
    assert told(ask(guard, signed(4, "https://second.example/"), OTHER)) == (200, "")


def test_without_a_signature_the_name_is_refused(guard: Guard) -> None:
    answer = ask(guard, {})
    assert told(answer) == (403, "comity.proof")
    assert detail(answer) == (
        f"the name `examplebot` has to be proved by a signature of {DIRECTORY}: the request has no"
        " signature"
    )
    assert dict(answer.headers)["Accept-Signature"] == (
        'sig1=("@authority" "signature-agent";key="sig1");created;expires;alg="ed25519"'
        ';tag="web-bot-auth"'
    )
    assert guard.agents == {AgentRow("examplebot", Proof.CLAIMED, ""): 1}
    assert guard.refused == {"comity.proof": 1}


WRONG: dict[str, tuple[dict[str, str], str]] = {
    "another key": (signed(3), "has no key"),
    "another host": (signed(to="https://example.org"), "does not match the request"),
    "another port": (signed(to="https://example.com:8443"), "does not match the request"),
    "expired": (signed(at=NOW - LIFETIME), "it has expired"),
    "from the future": (signed(at=NOW + 60), "it was created in the future"),
    "the directory of another name": (signed(2, OTHER_URL), f"is of {OTHER_URL}"),
    "a directory that nobody lists": (
        signed(3, "https://evil.example"),
        f"is of https://evil.example{WELL_KNOWN}",
    ),
    "the field of another directory": (
        signed() | {"signature-agent": f'sig1="{OTHER_URL}"'},
        f"is of {OTHER_URL}",
    ),
    "no Signature-Agent": (
        {name: value for name, value in signed().items() if name != "signature-agent"},
        "it has no field Signature-Agent",
    ),
    "no Signature": (
        {name: value for name, value in signed().items() if name != "signature"},
        "it has no field Signature",
    ),
    "two labels": (
        {
            name: f"{value}, {value}" if name == "signature" else value
            for name, value in signed().items()
        },
        "does not match",
    ),
    "no field that is valid": (signed() | {"signature-input": "sig1=("}, "not a valid structured"),
    "too long": (signed() | {"signature": "a" * 9000}, "more than 8192 characters"),
    "not ASCII": (signed() | {"signature-agent": 'sig1="https://bücher.example"'}, "not a valid"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_signature_does_not_prove_the_name(guard: Guard, wrong: str) -> None:
    fields, problem = WRONG[wrong]
    answer = ask(guard, fields)
    assert told(answer)[0] == 403, detail(answer)
    assert problem in detail(answer)
    [row] = guard.agents
    assert row.proof is not Proof.PROVED


def changed(what: str, by: str) -> dict[str, str]:
    fields = signed()
    assert what in fields["signature-input"]
    return fields | {"signature-input": fields["signature-input"].replace(what, by)}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (changed(";alg=", ";alg=token;al="), "its algorithm is not ed25519"),
        (changed('alg="ed25519"', 'alg="hmac-sha256"'), "its algorithm is not ed25519"),
        (changed(f";expires={NOW + LIFETIME}", ""), "`expires` is missing"),
        (changed(f";expires={NOW + LIFETIME}", f";expires={NOW + 90_000}"), "for more than 86400"),
        (changed(f";expires={NOW + LIFETIME}", f";expires={NOW + 400}"), "does not match"),
        (changed(f";expires={NOW + LIFETIME}", f";expires={NOW}.5"), "is no number"),
        (changed(f"created={NOW}", "created"), "`created` is missing"),
        (changed(f"created={NOW}", f"created={NOW - 1}"), "does not match"),
        (changed("keyid=", "key="), "`keyid` is missing"),
        (changed(";nonce=", ";nonce=5;x="), "`nonce` is no text"),
        (changed(";nonce=", ";x=1;nonce="), "does not match"),
        (changed('"@authority" ', ""), "covers neither @authority nor @target-uri"),
        (changed('"@authority"', '"@authority";x'), "covers neither @authority nor @target-uri"),
        (changed('"@authority"', '"@target-uri"'), "does not match"),
        (changed(' "signature-agent";key="sig1"', ""), "does not cover one member"),
        (changed('"signature-agent";key="sig1"', '"signature-agent"'), "not cover one member"),
        (changed('key="sig1"', 'key="sig2"'), "Signature-Agent has no member `sig2`"),
        (changed('sig1=("', 'sig1="'), "not a valid structured field"),
        (changed('sig1=("@authority" "signature-agent";key="sig1")', "sig1=5"), "a list of at"),
    ],
)
def test_no_part_of_a_signature_can_be_changed(
    guard: Guard, fields: dict[str, str], problem: str
) -> None:
    answer = ask(guard, fields)
    assert told(answer) == (403, "comity.proof")
    assert problem in detail(answer)


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        ('"http://bot.example.org"', "is no https URL"),
        ('"https://user@bot.example.org"', "is no https URL"),
        ('"bot.example.org"', "is no URL"),
        ('"https://"', "is no URL"),
        ('"https://[::1"', "is no URL"),
        ("5", "is no URL"),
        (f'"{AGENT_URL}";type=cimd', "has a `type` that is not supported"),
        (f'"{AGENT_URL}/{"a" * MAX_URL}"', f"has more than {MAX_URL} characters"),
    ],
)
def test_a_signature_agent_is_an_https_url(guard: Guard, member: str, problem: str) -> None:
    answer = ask(guard, signed() | {"signature-agent": f"sig1={member}"})
    assert told(answer) == (403, "comity.proof")
    assert problem in detail(answer)


def sign(url: str, covered: tuple[str, ...], agent: str, method: str = "GET") -> dict[str, str]:
    """Return the fields of a request that another program signs."""
    request = SignedRequest(method, url, {"signature-agent": agent})
    HTTPMessageSigner(
        signature_algorithm=algorithms.ED25519, key_resolver=OneKey(private=new_key(2))
    ).sign(
        request,
        key_id=thumbprint(new_key(2).public_key()),
        created=datetime.fromtimestamp(NOW, UTC),
        expires=datetime.fromtimestamp(NOW + 60, UTC),
        nonce=url + method,
        label="other",
        tag="web-bot-auth",
        covered_component_ids=covered,
    )
    return {name.lower(): value for name, value in request.headers.items()}


@pytest.mark.parametrize(
    ("covered", "agent"),
    [
        (("@target-uri", '"signature-agent";key="other"'), f'other="{OTHER_URL}"'),
        (("@authority", '"signature-agent";key="b"'), f'a="https://a.example", b="{OTHER_URL}"'),
        (("@target-uri", '"signature-agent";key="b"'), f'b="{OTHER_URL}?x=1";type=jwks_uri'),
        (("@method", "@authority", "@path", "@query", "signature-agent"), f'"{OTHER_URL}"'),
        (("@target-uri", '"@query-param";name="b"', "signature-agent"), f'"{OTHER_URL}"'),
    ],
)
def test_signatures_of_other_programs(guard: Guard, covered: tuple[str, ...], agent: str) -> None:
    fields = sign(f"{ORIGIN}/a?b=c", covered, agent)
    assert told(ask(guard, fields, OTHER, "/a?b=c")) == (200, "")
    if "@authority" not in covered or "@path" in covered:
        elsewhere = sign(f"{ORIGIN}/a?b=d", covered, agent)
        assert told(ask(guard, elsewhere, OTHER, "/a?b=c")) == (403, "comity.proof")


@pytest.mark.parametrize(
    ("covered", "agent", "problem"),
    [
        (("@authority",), f'"{OTHER_URL}"', "it does not cover signature-agent"),
        (
            ("@authority", '"signature-agent";key="a"', '"signature-agent";key="b"'),
            f'a="{OTHER_URL}", b="{OTHER_URL}"',
            "it does not cover one member of signature-agent",
        ),
        (
            ("@authority", '"signature-agent";key="a"'),
            f'a="https://a.example", a="{OTHER_URL}"',
            "Signature-Agent has the label `a` twice",
        ),
    ],
)
def test_a_signature_covers_the_member_that_counts(
    guard: Guard, covered: tuple[str, ...], agent: str, problem: str
) -> None:
    answer = ask(guard, sign(f"{ORIGIN}/", covered, agent), OTHER)
    assert told(answer) == (403, "comity.proof")
    assert problem in detail(answer)


def test_a_request_has_at_most_four_signatures(guard: Guard) -> None:
    fields = signed()
    member = fields["signature-input"].partition("=")[2]
    for number in (3, 4):
        more = "".join(f", more{each}={member}" for each in range(number))
        answer = ask(guard, fields | {"signature-input": fields["signature-input"] + more})
        assert told(answer) == (403, "comity.proof")
        assert ("it has 5 signatures" in detail(answer)) is (number == 4)


@pytest.mark.parametrize("is_shared", [False, True])
def test_each_directory_has_nonces_of_its_own(
    new_guard: Callable[..., Guard], tmp_path: Path, is_shared: bool
) -> None:
    guard = new_guard(nonces=SharedNonces(tmp_path / "nonces", 1) if is_shared else Nonces(1))
    assert told(ask(guard, signed())) == (200, "")
    assert told(ask(guard, signed())) == (503, "comity.proof-unknown")
    assert told(ask(guard, signed(2, OTHER_URL), OTHER)) == (200, "")


def test_a_target_that_no_url_has_only_matters_if_it_is_signed(guard: Guard) -> None:
    agent = f'other="{OTHER_URL}"'
    member = '"signature-agent";key="other"'
    for covered, status in (("@authority", 200), ("@target-uri", 403)):
        fields = sign(f"{ORIGIN}/", (covered, member), agent)
        assert told(ask(guard, fields, OTHER, "/|["))[0] == status


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_nonce_is_used_once(
    new_guard: Callable[..., Guard], clock: Clock, tmp_path: Path, is_shared: bool
) -> None:
    guard = new_guard(nonces=SharedNonces(tmp_path / "nonces") if is_shared else None)
    fields = signed()
    assert told(ask(guard, fields)) == (200, "")
    again = ask(guard, fields)
    assert told(again) == (429, "comity.proof-used")
    assert "its nonce was used before" in detail(again)
    assert dict(again.headers)["Retry-After"] == "1"
    assert "Accept-Signature" in dict(again.headers)
    assert told(ask(guard, signed())) == (200, "")
    clock.now += LIFETIME - 1
    assert told(ask(guard, fields)) == (429, "comity.proof-used")
    clock.now += 1
    assert told(ask(guard, fields)) == (403, "comity.proof")


def test_workers_of_a_server_share_nonces(new_guard: Callable[..., Guard], tmp_path: Path) -> None:
    guards = [new_guard(nonces=SharedNonces(tmp_path / "nonces")) for _ in range(3)]
    fields = signed()
    assert [told(ask(guard, fields))[0] for guard in guards] == [200, 429, 429]
    fields = signed()
    assert in_fork(lambda: told(ask(guards[0], fields))[0] == 200)
    assert [told(ask(guard, fields))[0] for guard in guards] == [429, 429, 429]
    # A worker that is started again knows them too.
    assert told(ask(new_guard(nonces=SharedNonces(tmp_path / "nonces")), fields))[0] == 429
    assert told(ask(guards[0], signed()))[0] == 200


def test_of_workers_at_a_time_one_uses_the_nonce(
    new_guard: Callable[..., Guard], tmp_path: Path
) -> None:
    guards = [new_guard(nonces=SharedNonces(tmp_path / "nonces")) for _ in range(4)]
    fields = signed()
    with ThreadPoolExecutor(8) as threads:
        outcomes = [*threads.map(lambda n: told(ask(guards[n % 4], fields))[0], range(40))]
    assert Counter(outcomes) == {200: 1, 429: 39}


def test_a_file_of_nonces_that_fails_proves_nothing(
    new_guard: Callable[..., Guard], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "nonces"
    guard = new_guard(nonces=SharedNonces(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE nonce")
        db.commit()
    for _ in range(2):
        assert told(ask(guard, signed())) == (503, "comity.proof-unknown")
    assert caplog.text.count("until they can, signatures prove nothing") == 1
    path.write_text("no database at all, but a text that is long enough for a header of one")
    with pytest.raises(PolicyError, match=r"SharedNonces: the file .* remove the file"):
        SharedNonces(path)


def test_of_many_at_a_time_one_uses_the_nonce(guard: Guard) -> None:
    fields = signed()
    with ThreadPoolExecutor(8) as threads:
        outcomes = [*threads.map(lambda _: told(ask(guard, fields)), range(40))]
    assert Counter(outcomes) == {(200, ""): 1, (429, "comity.proof-used"): 39}


def test_a_nonce_can_be_required(
    new_guard: Callable[..., Guard], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_urlsafe", lambda _: "")
    fields = signed()
    guard = new_guard()
    assert [told(ask(guard, fields))[0] for _ in range(2)] == [200, 200]
    answer = ask(new_guard(needs_nonce=True), fields)
    assert told(answer) == (403, "comity.proof")
    assert "it has no nonce" in detail(answer)


def test_keys_that_are_not_known_refuse_for_a_time(guard: Guard, directories: Directories) -> None:
    directories.unknown.add(DIRECTORY)
    fields = signed()
    answer = ask(guard, fields)
    assert told(answer) == (503, "comity.proof-unknown")
    assert "HTTP status 500" in detail(answer)
    assert dict(answer.headers)["Retry-After"] == "40"
    assert guard.agents == {AgentRow("examplebot", Proof.CLAIMED, ""): 1}
    directories.unknown.clear()
    assert told(ask(guard, fields)) == (200, "")  # its nonce was not used


def test_each_claimed_name_has_to_be_proved(guard: Guard) -> None:
    both = f"{BOT} {OTHER}"
    assert told(ask(guard, signed(), both)) == (403, "comity.proof")
    assert {row.name: row.proof for row in guard.agents} == {
        "examplebot": Proof.PROVED,
        "otherbot": Proof.SIGNED,
    }
    first, second = signed(), signed(2, OTHER_URL)
    two = {name: f"{first[name]}, {second[name].replace('sig1', 'sig2')}" for name in first}
    # The label is no part of what is signed, but the key of the Signature-Agent is.
    assert told(ask(guard, two, both)) == (403, "comity.proof")


@pytest.mark.parametrize("user_agent", [FIREFOX, "namedbot/1", "curl/8", ""])
def test_other_names_need_no_proof(guard: Guard, user_agent: str) -> None:
    assert told(ask(guard, {}, user_agent)) == (200, "")
    assert told(ask(guard, {"signature": "x"}, user_agent)) == (200, "")


def test_policy_files_need_no_proof(guard: Guard) -> None:
    answer = ask(guard, {}, target="/robots.txt")
    assert (answer.status, answer.body) == (200, FILES["/robots.txt"])


def test_a_proved_name_obeys_the_files(directories: Directories, clock: Clock) -> None:
    proofs = Proofs({"namedbot": AGENT_URL}, directories)
    guard = Guard(ORIGIN, FILES, proofs=proofs, clock=clock)
    assert told(ask(guard, signed(), "namedbot/1", "/private/")) == (403, "robots.disallow")
    assert told(ask(guard, signed(), "namedbot/1", "/open")) == (200, "")


def test_a_site_may_only_observe(new_guard: Callable[..., Guard]) -> None:
    guard = new_guard(required_names=())
    attempts: list[dict[str, str]] = [{}, signed(3), signed()]
    for fields in attempts:
        assert told(ask(guard, fields)) == (200, "")
    assert {row.proof: number for row, number in guard.agents.items()} == {
        Proof.CLAIMED: 1,
        Proof.INVALID: 1,
        Proof.PROVED: 1,
    }


def test_a_directory_that_a_client_names_is_asked_for_only_if_wanted(
    new_guard: Callable[..., Guard], directories: Directories
) -> None:
    evil = signed(3, "https://evil.example")
    guard = new_guard()
    assert directories.expected == frozenset()
    assert told(ask(guard, evil, "evilbot/1")) == (200, "")
    assert directories.expected == {DIRECTORY, OTHER_URL, "https://second.example" + WELL_KNOWN}
    assert directories.asked == []
    guard = new_guard(discovers=True)
    assert told(ask(guard, evil, "evilbot/1")) == (200, "")
    assert directories.asked == [("https://evil.example" + WELL_KNOWN, False)]
    assert guard.agents == {AgentRow("", Proof.SIGNED, "https://evil.example" + WELL_KNOWN): 1}
    assert told(ask(guard, signed(3, "https://evil.example"))) == (403, "comity.proof")


def test_a_request_that_is_signed_is_automated(guard: Guard) -> None:
    assert told(ask(guard, signed(), FIREFOX)) == (200, "")
    assert sum(guard.agents.values()) == 1
    assert told(ask(guard, {}, FIREFOX)) == (200, "")
    assert sum(guard.agents.values()) == 1


def test_without_proofs_all_names_are_claims() -> None:
    guard = Guard(ORIGIN, FILES)
    attempts: list[dict[str, str]] = [{}, signed()]
    for fields in attempts:
        assert told(ask(guard, fields, "namedbot/1")) == (200, "")
    assert guard.agents == {AgentRow("namedbot", Proof.CLAIMED, ""): 2}


@pytest.mark.parametrize(
    ("agents", "options", "complaint"),
    [
        ({"a b": AGENT_URL}, {}, "`a b` is not a product token: use letters"),
        ({"a": "http://a.example"}, {}, "the key directory of `a` is not an https URL of at most"),
        (
            {"a": AGENT_URL + "/".ljust(MAX_URL, "a")},
            {},
            f"the key directory of `a` is not an https URL of at most {MAX_URL} characters: write",
        ),
        ({"a": AGENT_URL}, {"required_names": ["b"]}, "`b` has no key directory: add it"),
        ({"a": AGENT_URL}, {"max_lifetime": 0}, "max_lifetime `0` is too short: write 1 or more"),
    ],
)
def test_mistakes_in_the_arguments(
    directories: Directories, agents: Any, options: Any, complaint: str
) -> None:
    with pytest.raises(PolicyError) as error:
        Proofs(agents, directories, **options)
    assert str(error.value).startswith(complaint)


def use(nonces: UsedNonces, number: int, later: int = 0) -> str:
    return nonces.use("", bytes([number]), NOW + later + 60, NOW + later)


def test_the_memory_is_bounded(tmp_path: Path) -> None:
    for nonces in (Nonces(2), SharedNonces(tmp_path / "nonces", 2)):
        assert [use(nonces, number) for number in (0, 1, 2)] == ["", "", TOO_MANY]
        assert [use(nonces, number) for number in (0, 1, 2)] == [USED, USED, TOO_MANY]
        assert [use(nonces, number, 60) for number in (2, 3, 4)] == ["", "", TOO_MANY]
    table = AgentTable()
    table.update(AgentRow(str(number), Proof.CLAIMED, "") for number in range(MAX_ROWS + 5))
    table.update([AgentRow("0", Proof.CLAIMED, "")])
    assert len(table) == MAX_ROWS
    assert table[AgentRow("0", Proof.CLAIMED, "")] == 2


@pytest.mark.requirement("SEC-1")
def test_a_nonce_takes_little_memory(directories: Directories) -> None:
    """However long it, its URL and its `keyid` are: 100,000 are in memory for each directory."""
    url = "https://evil.example/".ljust(MAX_URL, "a")
    directories.numbers[url] = 3
    proofs = Proofs(NAMES, directories, discovers=True)
    requests = [SignedRequest("GET", ORIGIN, signed(3, url)) for _ in range(100)]
    proofs.check(requests.pop(), NOW)
    tracemalloc.start()
    for request in requests:
        [signature] = proofs.check(request, NOW)
        assert signature.outcome is Outcome.VERIFIED
        directories.asked.clear()
    octets, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert octets < 400 * len(requests)


def test_too_many_nonces_prove_nothing(
    new_guard: Callable[..., Guard], monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = new_guard()
    monkeypatch.setattr(Nonces, "use", lambda *_: TOO_MANY)
    assert told(ask(guard, signed())) == (503, "comity.proof-unknown")


# Hostile fields

SIGNED = signed()
PIECES = [
    *('"', "(", ")", ";", ",", "=", ":", " ", "sig1", "sig1=", "?1", "@123", '%"a"', "5"),
    *("created", "expires", "keyid", "tag", "alg", "nonce", "req", "sf", "bs", "tr", "name", "key"),
    *('"@authority"', '"@target-uri"', '"@query-param"', '"@path"', '"@status"', '"signature"'),
    *('"signature-agent"', '"web-bot-auth"', "web-bot-auth", ":AAAA:", f'"{AGENT_URL}"', "\x00"),
    *SIGNED.values(),
]
VALUES = st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@given(st.fixed_dictionaries(dict.fromkeys(signed(), VALUES)))
@example(dict.fromkeys(signed(), "a," * 4096))
@example(dict.fromkeys(signed(), "(" * 8192))
@example(signed() | {"signature-input": signed()["signature-input"] + ", a=1" * 500})
def test_no_fields_prove_a_name_by_chance(fields: dict[str, str]) -> None:
    guard = Guard(ORIGIN, FILES, proofs=Proofs(NAMES, Directories()), clock=lambda: NOW)
    if fields != signed():
        assert told(ask(guard, fields))[0] == 403


@given(st.data())
def test_no_octet_of_a_signed_request_may_change(data: st.DataObject) -> None:
    fields = SIGNED
    name = data.draw(st.sampled_from(sorted(fields)))
    value = fields[name]
    place = data.draw(st.integers(0, len(value) - 1))
    change = data.draw(st.sampled_from(['"', ";", " ", "A", "=", ":", "", "é"]))
    changed_fields = fields | {name: value[:place] + change + value[place + 1 :]}
    guard = Guard(ORIGIN, FILES, proofs=Proofs(NAMES, Directories()), clock=lambda: NOW)
    status, _ = told(ask(guard, changed_fields))
    # Space around members is not signed.
    is_same = [part.split() for part in changed_fields.values()] == [
        part.split() for part in fields.values()
    ]
    assert status == (200 if is_same else 403)
