"""A tag is understood where it is valid by the schema that the package ships, and nowhere else."""

from __future__ import annotations

import copy
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from comity.bounded import Bounded
from comity.dataset.export.export import export
from comity.dataset.files.formats import open_writer
from comity.dataset.permissions.terms import Terms
from comity.dataset.tags.sources import read
from comity.policies import Agent, Site
from comity.policies import tag as tag_module
from comity.policies.tag import TagError, no_page

if TYPE_CHECKING:
    from tests.dataset.conftest import MakeRecord

VALIDATOR = Draft202012Validator(
    json.loads(files("comity.policies").joinpath("permissions.schema.json").read_text())
)
AGENT = Agent("testbot", uses=("train", "present-snippet"))
RESOURCE = {"role": "credit", "extract": "id:by", "url": "", "content": "A. Author"}


def understood(tag: Any) -> bool:
    try:
        read({"permissions": tag})
    except TagError:
        return False
    return True


def full(make_record: MakeRecord) -> dict[str, Any]:
    """A tag with everything in it."""
    guide = [{"actions": ["cite"], "guidelines": [{"lang": "en", "text": "Do."}]}]
    spans = [["title"], ["links", 0], ["text", 0, 4]]
    conditions = {
        "until": "2027-01-01T00:00:00Z",
        "until_recrawled": True,
        "max_chars": 5,
        "max_words": 2,
    }
    names = {
        "prohibited_modifications": ["any"],
        "prohibited_contexts": ["a"],
        "required_contexts": ["b"],
    }
    return make_record(  # type: ignore[no-any-return]
        elements=[
            {"guide": guide, "spans": spans, "urls": ["https://example.com/b"]},
            {"whole": True},
        ],
        embedded={"train": None},
        train=conditions | names | {"must_use": [RESOURCE], "must_include": [RESOURCE]},
    )["permissions"]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, member in members for place in places(member, (*path, key)))]


JSON = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        -1,
        5,
        1.5,
        "",
        "x",
        "allow",
        "index",
        [],
        [0],
        ["a", "a"],
        [1, "a"],
        {},
        {"a": 1},
    ]
)


@pytest.mark.requirement("MEET-5", "SEC-6")
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=4 * settings().max_examples,
)
@given(st.data())
def test_what_is_understood_is_valid_and_what_is_valid_is_understood(
    make_record: MakeRecord, data: st.DataObject
) -> None:
    root = {"tag": full(make_record)}
    steps = ("tag", *data.draw(st.sampled_from(places(root["tag"]))))
    holder: Any = root
    for step in steps[:-1]:
        holder = holder[step]
    how = data.draw(st.sampled_from(["replace", "remove", "add"]))
    if how == "remove" and isinstance(holder, dict) and steps != ("tag",):
        del holder[steps[-1]]
    elif how == "add" and isinstance(holder[steps[-1]], dict):
        holder[steps[-1]][
            data.draw(st.sampled_from(["new", "until", "whole", "schema", "index"]))
        ] = data.draw(JSON)
    else:
        holder[steps[-1]] = data.draw(JSON)
    valid = VALIDATOR.is_valid(root["tag"])
    if understood(root["tag"]):
        assert valid
    elif valid:  # the schema cannot require a valid date, or an index of an existing reason
        assert "because" in steps or "reasons" in steps or steps[-1] == "until" or how == "add"


def test_everything_is_understood(make_record: MakeRecord) -> None:
    tag = full(make_record)
    VALIDATOR.validate(tag)
    assert understood(tag)


@pytest.mark.parametrize(
    "robots",
    [
        b"",
        b"User-agent: *\nDisallow: /\nContent-Signal: ai-train=no\n",
        (
            b"ACAP-crawler: *\nACAP-allow-index: / time-limit=30-days\n"
            b"ACAP-allow-present-snippet: / max-length=5-words\n"
        ),
    ],
)
def test_tags_that_comity_writes_are_understood(robots: bytes) -> None:
    headers = [(b"X-Robots-Tag", b"noarchive, max-snippet: 50, unavailable_after: 2040-01-01")]
    page = Site.from_files("https://example.com", {"/robots.txt": robots}).page(
        AGENT, "https://example.com/a", headers=headers
    )
    assert understood(page.permissions)
    assert understood(no_page(AGENT, "why"))


@pytest.mark.requirement("MEET-3")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"schema": 2}, "invalid-tag:schema"),
        ({"schema": True}, "invalid-tag:schema"),
        ({"more": 1}, "invalid-tag:keys"),
        ({"uses": {}}, "invalid-tag:uses"),
        ({"elements": None}, "invalid-tag:elements"),
        ({"embedded": {}}, "invalid-tag:embedded"),
        ({"reasons": []}, "invalid-tag:because"),
        ({"policies": {"u": {}}}, "invalid-tag:policies"),
    ],
)
def test_why(make_record: MakeRecord, change: dict[str, Any], why: str) -> None:
    record = make_record()
    record["permissions"] |= change
    with pytest.raises(TagError) as error:
        read(record)
    assert str(error.value) == why


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("action", ["Train", "TRAIN", "train"])
def test_actions_that_are_not_in_lower_case_are_no_actions(
    make_record: MakeRecord, action: str, form: str, tmp_path: Path
) -> None:
    """They would refuse nothing, though they may be meant to refuse."""
    records = [make_record(train={}, elements=[{"deny": [action], "spans": [["text", 0, 4]]}])]
    path = tmp_path / f"a.{form}"
    with open_writer(path) as writer:
        writer.write(writer.encode(records))
    exported = export([path], tmp_path / "out.parquet", Terms.of(["train"]))
    assert exported.counts.causes == ({} if action == "train" else {"invalid-tag:elements": 1})


@pytest.mark.parametrize("tag", [None, {}, "", [], 0])
def test_no_tag(tag: Any) -> None:
    for record in ({"permissions": tag}, {}):
        with pytest.raises(TagError, match="no-tag"):
            read(record)


@pytest.mark.parametrize(
    "said",
    [
        {"verdict": "maybe"},
        {"until": "2027-01-01T00:00:00"},
        {"until": "soon"},
        {"until": "0001-01-01T00:00:00+14:00"},
        {"until": "9999-12-31T23:59:59-14:00"},
        {"until": None},
        {"max_words": True},
        {"max_words": -1},
        {"only_on": "sundays"},
    ],
)
def test_a_use_that_is_not_understood(make_record: MakeRecord, said: dict[str, Any]) -> None:
    """Also where the same was understood before, and with `true` for 1, which Python takes for
    equal."""
    assert understood(make_record(train={"max_words": 1})["permissions"])
    assert not understood(make_record(train=said)["permissions"])


def test_what_is_known_again_is_bounded(
    make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tag_module._USES, "_results", Bounded(3))
    for number in range(10):
        tag = read(make_record(train={"max_words": number}))
        assert tag.uses["train"].qualifiers.max_words == number
    assert len(tag_module._USES) <= 3


def test_reading_changes_nothing(make_record: MakeRecord) -> None:
    record = make_record(elements=[{"spans": [["text", 0, 3]]}], train={})
    before = copy.deepcopy(record)
    read(record)
    assert record == before
