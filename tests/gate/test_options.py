"""Settings are read in all valid forms. An invalid one is a PolicyError with its name."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings

from comity.gate.options import DEFAULTS, Options, SettingsError
from comity.gate.options.profiles import PROFILES
from comity.policies import PolicyError, Verdict
from comity.policies.vocabulary.table import Vocabulary


def options(**settings: Any) -> Options:
    return Options.from_settings(Settings(settings))


def test_without_any_setting() -> None:
    found = options()
    assert (found.agent.token, found.agent.uses, found.agent.purposes, found.agent.defaults) == (
        "comitybot",
        (),
        (),
        {},
    )
    assert (found.policy_timeout, found.min_delay, found.max_delay, found.drop_unusable) == (
        15,
        1,
        300,
        True,
    )
    assert (found.sessions, found.purpose_header, found.agent.key_header) == (
        (),
        "Automation-Purpose",
        "X-API-Key",
    )
    assert found.agent.automation_required is False
    assert found.agent.denies_unreachable is True
    assert (found.skip_unusable, found.rel_nofollow) == (True, False)
    assert found.agent.vocabulary is Vocabulary.shipped()
    assert found.store.name == "policies.sqlite"


@pytest.mark.parametrize(
    ("value", "uses"),
    [
        ("Index, train", ("index", "train")),
        (["index", " train "], ("index", "train")),
        ("index,,INDEX,", ("index",)),
        ("present-snippet", ("present-snippet",)),
        ("", ()),
        (None, ()),
    ],
)
def test_uses(value: Any, uses: tuple[str, ...]) -> None:
    assert options(COMITY_USES=value).agent.uses == uses


@pytest.mark.requirement("ACAP-15")
def test_purposes() -> None:
    assert options(COMITY_PURPOSES="news, http://search.example/news").agent.purposes == (
        "news",
        "http://search.example/news",
    )


@pytest.mark.parametrize(
    "value",
    [
        "index:allow, Train:DENY",
        '{"index": "allow", "train": "deny"}',
        {"index": "allow", "train": "deny"},
    ],
)
def test_defaults(value: Any) -> None:
    assert options(COMITY_DEFAULTS=value).agent.defaults == {
        "index": Verdict.ALLOW,
        "train": Verdict.DENY,
    }


@pytest.mark.parametrize(
    ("value", "drop"), [(True, True), ("1", True), ("False", False), (0, False), (None, True)]
)
def test_flag(value: Any, drop: bool) -> None:
    assert options(COMITY_DROP_UNUSABLE=value).drop_unusable is drop


def test_flags_of_their_own() -> None:
    found = options(COMITY_SKIP_UNUSABLE="0", COMITY_REL_NOFOLLOW="true")
    assert (found.skip_unusable, found.drop_unusable, found.rel_nofollow) == (False, True, True)


@pytest.mark.requirement("MEET-4")
def test_vocabulary(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[vocabulary.house.terms]\nno-robots = {}\n")
    vocabulary = options(COMITY_VOCABULARY=str(own)).agent.vocabulary
    assert set(vocabulary.words) == {*Vocabulary.shipped().words, "house"}
    own.write_text("replaces = true\n[vocabulary.house.terms]\nno-robots = {}\n")
    assert set(options(COMITY_VOCABULARY=str(own)).agent.vocabulary.words) == {"house"}
    assert options(COMITY_VOCABULARY="").agent.vocabulary is Vocabulary.shipped()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read: No such file"),
        (b"[vocabulary", "has a mistake: is not TOML"),
        (b"words = 1", "has a mistake: `words` has no meaning: write replaces"),
        (
            b'[[relation]]\nuses = ["train"]\nterms = ["house:all"]\nkind = "within"\nwhy = ""',
            "`house:all` is not a word",
        ),
        (
            b'[vocabulary.house.terms]\nno-robots = {}\ntitle = "\xff"',
            "cannot be read: it is not a TOML file",
        ),
        (b"a = " + b"[" * 100_000, "COMITY_VOCABULARY"),
    ],
)
def test_a_vocabulary_that_cannot_be_used(text: bytes | None, says: str, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    if text is not None:
        own.write_bytes(text)
    with pytest.raises(PolicyError) as raised:
        options(COMITY_VOCABULARY=str(own))
    message = str(raised.value)
    assert message.startswith(f"COMITY_VOCABULARY `{own}")
    assert says in message
    assert message.splitlines() == [message]


def test_header_fields() -> None:
    found = options(
        COMITY_PURPOSE_HEADER="", COMITY_KEY_HEADER="X-Key", COMITY_AUTOMATION_REQUIRED="1"
    )
    assert (found.purpose_header, found.agent.key_header, found.agent.automation_required) == (
        "",
        "X-Key",
        True,
    )


@pytest.mark.requirement("MEET-8")
@pytest.mark.parametrize(("word", "denies"), [("deny", True), ("Default", False)])
def test_uses_that_an_unreachable_file_could_refuse(word: str, denies: bool) -> None:
    assert options(COMITY_UNREACHABLE_USES=word).agent.denies_unreachable is denies


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("COMITY_AGENT", "example bot", "`example bot` is not a product token"),
        ("COMITY_AGENT", "examplebot/1.0", "letters, digits"),
        ("COMITY_AGENT", "*", "product token"),
        ("COMITY_AGENT", "", "product token"),
        ("COMITY_USES", "index train", "commas between"),
        ("COMITY_USES", 5, "commas between"),
        ("COMITY_PURPOSES", "news\nhunting", "commas between"),
        ("COMITY_DEFAULTS", "index", "index:allow"),
        ("COMITY_DEFAULTS", "index:perhaps", "`index:perhaps` is neither allow nor deny"),
        ("COMITY_DEFAULTS", "index:defer", "neither allow nor deny"),
        ("COMITY_DEFAULTS", "index:allow,Index:deny", "both allow and deny for `index`"),
        (
            "COMITY_DEFAULTS",
            '{"index": "allow", "index": "deny"}',
            "both allow and deny for `index`",
        ),
        ("COMITY_DEFAULTS", "{" * 100_000, "not a mapping"),
        ("COMITY_DEFAULTS", ["index"], "not a mapping"),
        ("COMITY_DROP_UNUSABLE", "maybe", "write True or False"),
        ("COMITY_POLICY_TIMEOUT", 0, "above 0"),
        ("COMITY_MIN_DELAY", -1, "at least 0"),
        ("COMITY_MAX_WAITING", "9" * 5000, "write one of at least 0"),
        ("COMITY_METRICS", "9" * 5000, "write a number up to 65535"),
        ("COMITY_MIN_DELAY", "1s", "not a number of seconds"),
        ("COMITY_MAX_DELAY", "inf", "not a number of seconds"),
        ("COMITY_MAX_DELAY", 10**400, "not a number of seconds"),
        ("COMITY_KEEP_SEEN", "some", "not a number of seconds: write a number of at least 0"),
        (
            "COMITY_SESSIONS",
            '{"example.com": {"token": "literal"}}',
            "does not name a place: write env:VARIABLE or file:PATH",
        ),
        (
            "COMITY_PURPOSE_HEADER",
            "Automation Purpose",
            "`Automation Purpose` is not a name of a header field",
        ),
        ("COMITY_PURPOSE_HEADER", "Purpose: x\r\nCookie", "is not a name of a header field"),
        ("COMITY_KEY_HEADER", "", "use letters, digits and `-`"),
        ("COMITY_CONTENT_USAGE", "", "names no draft: write usage or aipref, or both"),
        ("COMITY_CONTENT_USAGE", "usage,w3c", "names no draft: write usage or aipref, or both"),
        ("COMITY_AUTOMATION_REQUIRED", "always", "write True or False"),
        ("COMITY_UNREACHABLE_USES", "allow", "`allow` is unknown: write deny or default"),
        ("COMITY_VOCABULARY", "a\0b", "cannot be read"),
        ("COMITY_VOCABULARY", ".", "cannot be read: Is a directory"),
        ("COMITY_SKIP_UNUSABLE", "maybe", "write True or False"),
        ("COMITY_REL_NOFOLLOW", "all", "write True or False"),
        ("COMITY_ELEMENTS", "remove", "write tag, redact or strip"),
        ("COMITY_STORE", "redis://localhost", "the path of a file"),
        ("COMITY_STORE", "a\0b", "the path of a file"),
        ("DOWNLOAD_SLOTS", {"example.com": 5}, "is not a mapping of hosts"),
        ("DOWNLOAD_SLOTS", {"example.com": {"delay": None}}, "`delay` of `example.com`"),
        ("DOWNLOAD_SLOTS", {"example.com": {"delay": "nan"}}, "`delay` of `example.com`"),
        (
            "DOWNLOAD_SLOTS",
            '{"example.com": {"delay": "1s"}}',
            "write a number of seconds, at least 0",
        ),
        (
            "DOWNLOAD_SLOTS",
            {"example.com": {"delay": 1, "concurrency": "few"}},
            "`concurrency` of `example.com`",
        ),
        (
            "DOWNLOAD_SLOTS",
            {"example.com": {"concurrency": float("inf")}},
            "`concurrency` of `example.com`",
        ),
    ],
)
def test_nonsense_is_said_in_one_line_with_the_setting(name: str, value: Any, says: str) -> None:
    with pytest.raises(PolicyError) as raised:
        options(**{name: value})
    assert name in str(raised.value)
    assert says in str(raised.value)


WORDS = st.text() | st.sampled_from(
    ["allow", "deny", "index", "index:allow", "train:deny", ",", "{", "1e999", "True"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.binary()
LICENCES = st.dictionaries(
    st.sampled_from(["uses", "reference"]) | SCALARS, SCALARS | st.lists(SCALARS)
)
HOSTS = st.sampled_from(["example.com", "*.example.com", "*.", "*"]) | SCALARS
VALUES = (
    SCALARS
    | st.lists(SCALARS)
    | st.dictionaries(HOSTS, SCALARS | LICENCES | st.lists(SCALARS | LICENCES))
    | st.lists(WORDS).map(",".join)
)


@given(name=st.sampled_from(sorted(DEFAULTS)), value=VALUES)
def test_any_value_gives_options_or_names_the_setting(name: str, value: Any) -> None:
    try:
        found = options(**{name: value})
    except PolicyError as error:
        message = str(error)
    else:
        message = name
        assert 0 <= found.min_delay < float("inf")
        assert set(found.agent.defaults.values()) <= {Verdict.ALLOW, Verdict.DENY}
        assert all(use == use.lower().strip() for use in found.agent.uses)
    assert name in message
    assert message.splitlines() == [message]
    assert len(message) < 500


def test_settings_error_ends_a_program_that_does_not_catch_it_with_one_line() -> None:
    """A program that catches it, e.g. a service that starts crawls, gets an ordinary exception."""
    assert issubclass(SettingsError, Exception)
    program = "from comity.gate.options import stop; stop('set it')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "comity: set it\n")


# The store of all projects of a machine


def test_the_store_is_that_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert options().store == tmp_path / "data" / "comity" / "policies.sqlite"
    assert not (tmp_path / "data").exists()
    (tmp_path / ".scrapy" / "comity").mkdir(parents=True)
    (tmp_path / ".scrapy" / "comity" / "policies.sqlite").touch()
    assert options().store == Path(".scrapy/comity/policies.sqlite")
    assert options(COMITY_STORE="a.sqlite").store == Path("a.sqlite")


def test_there_is_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container, the user may be missing in the list of users."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(
        PolicyError,
        match="COMITY_STORE is not set, and there is no home folder to keep policy files in",
    ):
        options()
    assert options(COMITY_STORE="a.sqlite").store == Path("a.sqlite")


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_sets_its_list_and_nothing_else(name: str) -> None:
    listed = {setting: value for setting, (value, _) in PROFILES[name].settings.items()}
    assert listed.keys() < DEFAULTS.keys()
    assert options(COMITY_PROFILE=name.upper()) == replace(options(**listed), profile=name)
    assert options(COMITY_PROFILE=name, **listed) == options(COMITY_PROFILE=name)


@pytest.mark.parametrize("name", PROFILES)
def test_each_setting_of_a_profile_gives_way_to_the_operator(name: str) -> None:
    without: dict[str, Any] = {
        "COMITY_PURPOSES": "",
        "COMITY_USES": (),
        "COMITY_DEFAULTS": {},
        "COMITY_ELEMENTS": "tag",
    }
    found = options(COMITY_PROFILE=name, **without)
    assert found == replace(options(), profile=name)


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_declares_one_use_and_a_default_for_it(name: str) -> None:
    agent = options(COMITY_PROFILE=name).agent
    (use,) = agent.uses
    assert use in agent.defaults


def test_the_highest_priority_of_scrapy_chooses_the_profile() -> None:
    settings = Settings()
    settings.set("COMITY_PROFILE", "search", priority="project")
    settings.set("COMITY_USES", "index", priority="project")
    settings.set("COMITY_PROFILE", "training", priority="spider")
    agent = Options.from_settings(settings).agent
    assert (agent.uses, agent.purposes) == (("index",), ("training",))


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("serch", "did you mean `search`? Else write search, archive,"),
        ("x", "write search, archive, training, research or monitoring"),
    ],
)
def test_an_unknown_profile(name: str, beginning: str) -> None:
    with pytest.raises(PolicyError) as error:
        options(COMITY_PROFILE=name)
    assert str(error.value).startswith(f"COMITY_PROFILE `{name}` is not a profile: {beginning}")
    assert "\n" not in str(error.value)
