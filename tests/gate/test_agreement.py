"""The settings in which the workers of a crawl agree: all that decide, in one text for equal settings, and no secrets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from comity.gate.options.agreement import LIMITS, Agreement, Difference
from comity.policies import PolicyError

SECRET = "open-sesame"


def agreement(spider: str = "pages", **settings: Any) -> Agreement:
    return Agreement.of(Settings(settings), spider)


@pytest.mark.requirement("STATE-4")
@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("COMITY_USES", "index,train", ["train", "Index"]),
        ("COMITY_DEFAULTS", "index:allow,train:deny", {"train": "deny", "index": "allow"}),
        ("COMITY_MIN_DELAY", "1", 1.0),
        ("COMITY_SKIP_UNUSABLE", "1", True),
        (
            "COMITY_ARRANGEMENTS",
            "a.example:take-down,a.example:re-crawl",
            {"a.example": ["re-crawl", "take-down"]},
        ),
    ],
)
def test_equal_settings_in_other_words_agree(name: str, one: Any, other: Any) -> None:
    assert agreement(**{name: one}) == agreement(**{name: other})


@pytest.mark.requirement("STATE-4")
@pytest.mark.parametrize(
    ("settings", "difference"),
    [
        ({"COMITY_AGENT": "otherbot"}, ("COMITY_AGENT", "comitybot", "otherbot")),
        ({"USER_AGENT": "x"}, ("USER_AGENT", "Scrapy", "x")),
        ({"COMITY_DEFAULTS": "train:allow"}, ("COMITY_DEFAULTS train", "nothing", "allow")),
        ({"COMITY_PURPOSES": "research"}, ("COMITY_PURPOSES", "nothing", "research")),
        (
            {"COMITY_ARRANGEMENTS": {"a.example": [{"uses": "train", "reference": "c 7"}]}},
            ("COMITY_ARRANGEMENTS a.example", "nothing", "licence c 7, train"),
        ),
        (
            {"COMITY_SESSIONS": {"a.example": {"token": "env:A_TOKEN", "human_initiated": True}}},
            (
                "COMITY_SESSIONS a.example",
                "nothing",
                "human True, since None, ['token']",
            ),
        ),
    ],
)
def test_settings_that_decide(
    settings: dict[str, Any], difference: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", SECRET)
    before = agreement(USER_AGENT="Scrapy")
    now = agreement(**{"USER_AGENT": "Scrapy", **settings})
    assert before.decisive(now) == [Difference(*difference)]
    assert before.harmless(now) == []
    assert SECRET.encode() not in now.as_json()


@pytest.mark.requirement("STATE-4")
def test_files_count_by_their_content(tmp_path: Path) -> None:
    """They may be in another folder on another machine."""
    found = []
    for folder, domain in (("one", "a.example"), ("two", "a.example"), ("three", "b.example")):
        path = tmp_path / folder / "list.txt"
        path.parent.mkdir()
        path.write_text(f"{domain}\n")
        found.append(agreement(COMITY_OPT_OUT=[str(path)]))
    one, two, three = found
    assert one == two
    assert [difference.name for difference in one.decisive(three)] == ["COMITY_OPT_OUT list.txt"]


@pytest.mark.requirement("STATE-4")
def test_other_settings_are_harmless() -> None:
    before = agreement()
    for name in (*LIMITS, "COMITY_MAX_DELAY", "COMITY_TAG"):
        now = agreement(**{name: "7" if name != "COMITY_TAG" else "off"})
        assert before.decisive(now) == []
        assert [difference.name for difference in before.harmless(now)] == [name]
    assert [*map(str, before.harmless(agreement("others")))] == [
        "spider is `others` here, and `pages` in the crawl"
    ]
    for name, value in (("COMITY_REPORT", "r.json"), ("COMITY_METRICS", "0"), ("COMITY_GC", "0")):
        assert agreement(**{name: value}) == before


@pytest.mark.slow
@pytest.mark.requirement("STATE-4")
def test_each_process_has_the_same_text(tmp_path: Path) -> None:
    """The order of sets differs between processes."""
    table = tmp_path / "table.toml"
    table.write_text(
        '[vocabulary.house.terms]\nno-robots = {}\n[[relation]]\nuses = ["train"]\n'
        'terms = ["house:no-robots"]\nkind = "within"\nwhy = "x"\n'
    )
    code = (
        "from scrapy.settings import Settings; from comity.gate.options.agreement import Agreement;"
        f"print(Agreement.of(Settings({{'COMITY_VOCABULARY': {str(table)!r},"
        " 'COMITY_ARRANGEMENTS': 'a.example:take-down,a.example:re-crawl'}), 'x').as_json())"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
    (text,) = texts
    assert b"sha256" in text
    assert Agreement.from_json(agreement().as_json()) == agreement()


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{", b'{"decides": 1, "others": {}}', b"[" * 100_000, b'{"decides": {}}']
)
def test_unreadable_settings_of_a_crawl_are_named(text: bytes) -> None:
    with pytest.raises(PolicyError, match="the settings of the crawl are unreadable"):
        Agreement.from_json(text)


def test_a_message_shows_no_hidden_character() -> None:
    crawl = Agreement.from_json(b'{"decides": {"COMITY_USES": "a\\u202eb\\n"}, "others": {}}')
    assert [*map(str, crawl.decisive(Agreement({}, {})))] == [
        "COMITY_USES is `nothing` here, and `a\N{REPLACEMENT CHARACTER}b` in the crawl"
    ]
