"""The records and parts that an export keeps, cuts and refuses."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from comity.dataset.permissions.apply_terms import apply_terms
from comity.dataset.permissions.expiry import Fetches
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from comity.policies import Agent, Site, Verdict
from comity.policies.agent import Arrangement
from comity.policies.answers.element_rule import ACTIONS
from comity.policies.vocabulary.table import Vocabulary

if TYPE_CHECKING:
    from tests.dataset.conftest import MakeRecord

VALIDATOR = Draft202012Validator(
    json.loads(files("comity.policies").joinpath("permissions.schema.json").read_text())
)
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TOKENS = ("Marker1", "Marker2", "Marker3")
BY = {"role": "credit", "extract": "id:by", "url": "", "content": "<p id=by>A. Author</p>"}
LINK = {"role": "link", "extract": "", "url": "https://example.com/terms.txt", "content": "Terms"}
ABSTRACT = {"role": "", "extract": "class:abstract", "url": "", "content": "In short"}
OTHER = {
    "role": "",
    "extract": "",
    "url": "https://example.com/index.txt",
    "content": "words for the index",
}


def terms(*uses: str, **others: Any) -> Terms:
    return Terms.of(uses, now=NOW, **others)


def text_of(record: dict[str, Any] | None) -> str:
    return json.dumps(record)


def kept(record: dict[str, Any], *uses: str, **others: Any) -> dict[str, Any]:
    """The record that comes out, with a valid tag."""
    before = copy.deepcopy(record)
    answer = apply_terms(record, terms(*uses, **others))
    assert record == before
    assert answer.record is not None, answer.cause
    VALIDATOR.validate(answer.record["permissions"])
    again = apply_terms(answer.record, terms(*uses, **others))
    assert again.record == answer.record
    return answer.record


def why(record: dict[str, Any], *uses: str, **others: Any) -> str:
    answer = apply_terms(record, terms(*uses, **others))
    assert answer.record is None
    return answer.cause


# The uses as a whole


@pytest.mark.requirement("MEET-3")
def test_what_is_permitted_comes_out_as_it_is(make_record: MakeRecord) -> None:
    record = make_record(train={}, index={"until": "2026-11-21T12:00:01Z"})
    assert apply_terms(record, terms("train", "index")).record is record


@pytest.mark.requirement("MEET-3", "ACAP-32")
@pytest.mark.parametrize(
    ("uses", "asked", "why_not"),
    [
        ({}, ("train",), "not-listed:train"),
        ({"train": {}}, ("train", "genai"), "not-listed:genai"),
        ({"train": None}, ("train",), "deny:acap.disallow"),
        ({"train": {}, "index": None}, ("train", "index"), "deny:acap.disallow"),
        ({"index": {"until": "2026-11-21T12:00:00Z"}}, ("index",), "expired:index"),
        ({"index": {"until": "2026-11-21T13:00:00+02:00"}}, ("index",), "expired:index"),
        (
            {"train": {}, "preserve": {"until": "2026-11-20T12:00:00Z"}},
            ("train",),
            "expired:preserve",
        ),
        ({"train": {"verdict": "maybe"}}, ("train",), "invalid-tag:uses"),
        ({"train": {}, "index": {"only_on": "sundays"}}, ("train",), "invalid-tag:uses"),
    ],
)
def test_refused(
    make_record: MakeRecord, uses: dict[str, Any], asked: tuple[str, ...], why_not: str
) -> None:
    assert why(make_record(**uses), *asked) == why_not


def test_the_statements_that_refuse(make_record: MakeRecord) -> None:
    answer = apply_terms(make_record(train=None), terms("train"))
    assert [reason["line"] for reason in answer.reasons] == [4]


def test_without_a_tag_nothing_is_permitted() -> None:
    for record in ({}, {"permissions": None}, {"permissions": "train"}):
        assert why(record, "train") in ("no-tag", "invalid-tag:keys")


@pytest.mark.requirement("ACAP-32")
def test_fetched_again(make_record: MakeRecord) -> None:
    """`until_recrawled`, and uses that show the page as it is now: they refuse an earlier copy."""
    uses = {
        "index": {"until_recrawled": True},
        "train": {},
        "present_snippet": {},
        "present_oldsnippet": {},
    }
    old = make_record(fields={"fetched_at": "2026-11-20T12:00:00+00:00"}, **uses)
    new = make_record(fields={"fetched_at": "2026-11-21T12:00:00+00:00"}, **uses)
    fetches = Fetches()
    for record in (new, old):
        fetches.note(record)
    recrawled = fetches.recrawled_pages()
    assert why(old, "index", recrawled=recrawled) == "superseded:index"
    assert why(old, "present-snippet", recrawled=recrawled) == "superseded:present-snippet"
    for use in ("train", "present-oldsnippet"):
        kept(old, use, recrawled=recrawled)
    for use in ("index", "present-snippet"):
        kept(new, use, recrawled=recrawled)
    preserved = make_record(
        train={},
        preserve={"until_recrawled": True},
        fields={"fetched_at": "2026-11-20T12:00:00+00:00"},
    )
    assert why(preserved, "train", recrawled=recrawled) == "superseded:preserve"


@pytest.mark.requirement("ACAP-32")
@pytest.mark.parametrize(
    ("fetched_at", "cause"),
    [
        ("20200101000000", "superseded"),
        (1_577_836_800, "superseded"),
        (1_577_836_800_000, "superseded"),
        ("yesterday", "undated"),
        (None, "undated"),
        ("2020-01-01T00:00:60Z", "undated"),
    ],
)
def test_what_is_shown_of_the_last_fetch_is_not_shown_of_one_that_may_be_earlier(
    make_record: MakeRecord, fetched_at: Any, cause: str
) -> None:
    old, new = (
        make_record(present_snippet={}, fields={"fetched_at": date})
        for date in (fetched_at, "2026-11-21T12:00:00Z")
    )
    alone = make_record(
        present_snippet={},
        fields={"fetched_at": fetched_at, "url": "https://b.test/", "final_url": None},
    )
    fetches = Fetches()
    for record in (old, new, alone):
        fetches.note(record)
    recrawled = fetches.recrawled_pages()
    assert why(old, "present-snippet", recrawled=recrawled) == f"{cause}:present-snippet"
    for record in (new, alone):
        kept(record, "present-snippet", recrawled=recrawled)


@pytest.mark.requirement("ACAP-32")
@pytest.mark.parametrize(
    "fields", [{"url": None, "final_url": None}, {"fetched_at": None}, {"fetched_at": "yesterday"}]
)
def test_nobody_knows_whether_it_was_fetched_again(
    make_record: MakeRecord, fields: dict[str, Any]
) -> None:
    record = make_record(index={"until_recrawled": True}, train={}, fields=fields)
    assert why(record, "index") == "undated:index"
    kept(record, "train")


def test_terms() -> None:
    asked = Terms.of([" Train", "train", "present-snippet"], now=NOW)
    assert asked.uses == ("train", "present-snippet")
    assert pickle.loads(pickle.dumps(asked)).uses == asked.uses
    for wrong in ([], [""], ["a b"], ["-"]):
        with pytest.raises(DatasetError):
            Terms.of(wrong)


# Elements


@pytest.mark.requirement("MEET-5", "AIT-16")
def test_elements_are_cut_and_others_stay_where_they_are(make_record: MakeRecord) -> None:
    text = "Free. Marker1 Quoted Marker2 End"
    record = make_record(
        train={},
        fields={
            "text": text,
            "title": "Marker3",
            "html": "<p>Marker1",
            "links": ["u", "https://e/Marker2", "v"],
        },
        elements=[
            {
                "spans": [["text", 6, 14], ["text", 21, 29], ["title"], ["html"], ["links", 1]],
                "urls": ["https://e/Marker2"],
                "guide": [{"actions": ["cite"], "guidelines": [{"lang": "en", "text": "Say so."}]}],
            },
            {
                "selector": "q",
                "deny": ["summarize"],
                "spans": [["text", 14, 32], ["html"], ["links", 2]],
                "urls": ["v"],
            },
        ],
    )
    out = kept(record, "train")
    assert out["text"] == "Free. Quoted End"
    assert (out["title"], out["html"], out["links"]) == ("", "", ["u", "v"])
    assert not any(token in text_of(out) for token in TOKENS)
    cut, other = out["permissions"]["elements"]
    assert cut["spans"] == []
    assert "urls" not in cut
    assert cut["guide"] == record["permissions"]["elements"][0]["guide"]
    assert other["spans"] == [["text", 6, 16], ["links", 1]]
    assert other["urls"] == ["v"]
    assert apply_terms(record, terms("summarize")).cause == "not-listed:summarize"


@pytest.mark.requirement("MEET-5")
@pytest.mark.parametrize(
    ("deny", "uses", "is_cut"),
    [
        (["train"], ("train",), True),
        (["train"], ("index",), False),
        (["train"], ("index", "train"), True),
        (["*"], ("index",), True),
        (["return"], ("present-snippet",), True),
        (["return"], ("train",), False),
        ([], ("train",), False),
        (["crop"], ("train",), False),
    ],
)
def test_which_elements(
    make_record: MakeRecord, deny: list[str], uses: tuple[str, ...], is_cut: bool
) -> None:
    elements = [{"deny": deny, "spans": [["text", 0, 7]]}]
    record = make_record(
        train={}, index={}, present_snippet={}, fields={"text": "Marker1 rest"}, elements=elements
    )
    assert ("Marker1" in text_of(kept(record, *uses))) is not is_cut
    whole = make_record(
        train={}, index={}, present_snippet={}, elements=[{"deny": deny, "whole": True}]
    )
    assert apply_terms(whole, terms(*uses)).cause == ("deny:ait.disallow" if is_cut else "")


@pytest.mark.requirement("MEET-4", "MEET-5")
def test_the_table_of_vocabularies_relates_actions_to_uses(make_record: MakeRecord) -> None:
    table = (
        '[vocabulary.ai-txt.terms]\ntrain = {}\n[[relation]]\nuses = ["genai-x"]\n'
        'kind = "touches"\nterms = ["ai-txt:train"]'
    )
    record = make_record(
        genai_x={}, fields={"text": "Marker1 rest"}, elements=[{"spans": [["text", 0, 7]]}]
    )
    assert kept(record, "genai-x", vocabulary=Vocabulary.from_toml(table))["text"] == " rest"


@pytest.mark.requirement("MEET-5")
def test_what_a_permission_names_of_the_page_may_be_what_is_cut(make_record: MakeRecord) -> None:
    """The tag stays with the record, and contains a copy of this part of the page."""
    by = BY | {"content": "Marker1"}
    record = make_record(
        train={},
        present={"must_include": [by]},
        index={"must_use": [OTHER]},
        elements=[{"deny": ["train"], "spans": []}],
    )
    out = kept(record, "train")
    assert "Marker1" not in text_of(out)
    tag = out["permissions"]
    assert tag["uses"]["index"] == record["permissions"]["uses"]["index"]
    assert why(out, "present") == "deny:acap.resource"
    refused = make_record(present={"must_include": [by]}, elements=[{"deny": ["return"]}])
    assert why(refused, "present") == "deny:acap.resource"
    kept(record, "present")


# Conditions


@pytest.mark.requirement("ACAP-34")
def test_length(make_record: MakeRecord) -> None:
    element = {"deny": ["train"], "spans": [["text", 0, 30], ["html"]]}
    record = make_record(
        train={},
        present_snippet={"max_words": 3, "max_chars": 100},
        ai_input={"max_chars": 8},
        fields={"text": "One two three four five six seven", "html": "<p>One two"},
        elements=[element],
    )
    out = kept(record, "present-snippet")
    assert (out["title"], out["text"], out["html"], out["links"]) == (
        "A title",
        "One two three",
        "",
        [],
    )
    assert out["permissions"]["elements"][0]["spans"] == [["text", 0, 13]]
    assert kept(record, "present-snippet", "ai-input")["text"] == "One two"
    two = make_record(present={"max_words": 2}, present_snippet={"max_words": 1})
    assert (
        kept(two, "present", "present-snippet")["text"]
        == kept(two, "present-snippet", "present")["text"]
        == "Some"
    )


@pytest.mark.requirement("AIT-16")
@pytest.mark.parametrize(
    ("spans", "is_refused"),
    [
        ([["text", 0, 3]], False),
        ([["text", 18, 23]], False),  # left out as a whole
        ([["text", 0, 23]], True),
        ([["text", 4, 7], ["text", 18, 23]], True),
        ([["text"]], True),
    ],
)
def test_what_is_not_to_be_clipped_is_not_shortened(
    make_record: MakeRecord, spans: list[Any], is_refused: bool
) -> None:
    fields = {"text": "One two three four five", "title": "", "links": []}
    elements = [{"deny": ["clip"], "spans": spans}]
    record = make_record(
        present_snippet={"max_words": 2}, train={}, fields=fields, elements=elements
    )
    assert apply_terms(record, terms("present-snippet")).cause == ("clip" if is_refused else "")
    assert kept(record, "train") is record
    whole = make_record(
        present_snippet={"max_words": 2},
        fields=fields,
        elements=[{"deny": ["clip"], "whole": True}],
    )
    assert why(whole, "present-snippet") == "clip"


@pytest.mark.requirement("AIT-16")
def test_what_is_cut_out_of_an_element_shortens_it_where_it_is_shown(
    make_record: MakeRecord,
) -> None:
    elements = [
        {"deny": ["clip"], "spans": [["text", 0, 9]]},
        {"deny": ["train", "return"], "spans": [["text", 2, 4]]},
    ]
    record = make_record(train={}, present={}, elements=elements)
    assert why(record, "present") == "clip"
    kept(record, "train")


@pytest.mark.requirement("ACAP-35")
def test_what_is_not_to_be_modified_is_not_cut(make_record: MakeRecord) -> None:
    currentcopy = {"prohibited_modifications": ["any"]}
    record = make_record(
        present_currentcopy=currentcopy, present_snippet={"max_words": 1}, train={}
    )
    assert kept(record, "present-currentcopy") is record
    assert why(record, "present-currentcopy", "present-snippet") == "modified"
    instead = make_record(present_currentcopy=currentcopy | {"must_use": [ABSTRACT]})
    assert kept(instead, "present-currentcopy")["must_use"] == [ABSTRACT]
    refused = make_record(
        present_currentcopy=currentcopy, elements=[{"deny": ["return"], "spans": [["text", 0, 2]]}]
    )
    assert why(refused, "present-currentcopy") == "modified"


@pytest.mark.requirement("MEET-3", "ACAP-35")
def test_a_use_that_is_a_prohibited_modification_is_refused_by_tags_of_before_that_permit_it(
    make_record: MakeRecord,
) -> None:
    translation, anything = (
        {"prohibited_modifications": [name]} for name in ("translation", "any")
    )
    for record in (
        make_record(translate=translation),
        make_record(translate=anything),
        make_record(translate={}, present=translation),
        make_record(translate={}, present_oldcopy=anything),
    ):
        assert why(record, "translate") == "modification:translate"
    for record in (
        make_record(translate={"prohibited_modifications": ["style"]}, present=None),
        make_record(translate={}, present={"prohibited_modifications": ["format"]}),
        make_record(translate={}, present_snippet=translation),
    ):
        assert kept(record, "translate") is record
    assert kept(make_record(present=translation), "present")
    assert (
        why(
            make_record(transcribe={}, present={"prohibited_modifications": ["format"]}),
            "transcribe",
        )
        == "modification:transcribe"
    )
    # By the operator's own table
    own = Vocabulary.from_toml(
        '[[relation]]\nuses = ["tagged"]\nkind = "within"\nterms = ["modification:annotation"]'
    )
    record = make_record(tagged={}, present={"prohibited_modifications": ["annotation"]})
    assert why(record, "tagged", vocabulary=own) == "modification:tagged"
    assert kept(record, "tagged") is record


@pytest.mark.requirement("MEET-3")
def test_a_licence_comes_before_a_prohibited_modification(make_record: MakeRecord) -> None:
    record = make_record(translate={}, present={"prohibited_modifications": ["any"]})
    record["permissions"]["reasons"][record["permissions"]["uses"]["translate"]["because"][0]][
        "rule"
    ] = "comity.arrangement"
    assert apply_terms(record, terms("translate")).record is not None


@pytest.mark.requirement("ACAP-33")
def test_what_is_to_be_used_instead(make_record: MakeRecord) -> None:
    fields = {
        "text": "Marker1",
        "html": "Marker1",
        "own": {"x": ["Marker1"]},
        "number": 7,
        "license": "Marker1",
    }
    elements = [{"deny": ["cite"], "spans": [["text", 0, 3]]}]
    record = make_record(
        index={"must_use": [ABSTRACT]},
        train={},
        fields=fields | {"title": "Marker1"},
        elements=elements,
    )
    out = kept(record, "index")
    assert "Marker1" not in text_of(out)
    assert out["must_use"] == [ABSTRACT]
    assert out["number"] is None
    assert out["url"] == record["url"]
    assert out["permissions"]["elements"][0]["spans"] == []


@pytest.mark.requirement("ACAP-33")
@pytest.mark.parametrize(
    ("index", "snippet", "used"),
    [
        ([ABSTRACT], [ABSTRACT, OTHER], [ABSTRACT]),
        ([ABSTRACT], [], [ABSTRACT]),  # a use of the page may use a part of it
        ([OTHER], [], None),  # and no other resource
        ([OTHER], [ABSTRACT], None),
        ([OTHER], [OTHER], [OTHER]),
    ],
)
def test_instead_for_several_uses(
    make_record: MakeRecord, index: list[Any], snippet: list[Any], used: list[Any] | None
) -> None:
    said: dict[str, Any] = {"must_use": snippet} if snippet else {}
    record = make_record(index={"must_use": index}, present_snippet=said)
    if used is None:
        assert why(record, "index", "present-snippet") == "must-use"
    else:
        assert kept(record, "index", "present-snippet")["must_use"] == used


@pytest.mark.requirement("ACAP-33", "ACAP-34")
def test_instead_is_not_shortened(make_record: MakeRecord) -> None:
    assert (
        why(make_record(present_snippet={"must_use": [OTHER], "max_words": 3}), "present-snippet")
        == "max-length"
    )
    kept(make_record(present_snippet={"must_use": [OTHER], "max_words": 4}), "present-snippet")


@pytest.mark.requirement("ACAP-34", "ACAP-35", "ACAP-36")
@pytest.mark.parametrize(
    "condition",
    [
        {"max_words": 5},
        {"max_words": 5, "prohibited_modifications": ["any"]},
        {"max_chars": 30, "must_use": [OTHER]},
    ],
)
def test_what_an_export_adds_is_no_text_of_the_page(
    make_record: MakeRecord, condition: dict[str, Any]
) -> None:
    """It takes its own place in the next export, which has nothing to cut."""
    fields: dict[str, Any] = {"title": "", "links": [], "sha256": "", "html": None}
    record = make_record(
        present=condition | {"must_include": [LINK], "because": [3]}, fields=fields
    )
    exported = kept(record, "present")
    assert (exported["attribution"], exported["license"]) == (
        [LINK],
        ["https://example.com/license.xml"],
    )
    assert exported["text"] == ("" if "must_use" in condition else record["text"])


@pytest.mark.requirement("ACAP-36")
def test_attribution_and_license(make_record: MakeRecord) -> None:
    record = make_record(
        present={"must_include": [BY, LINK]},
        present_link={"must_include": [LINK]},
        train={"because": [0, 3, 4]},
    )
    assert kept(record, "present-link", "present")["attribution"] == [LINK, BY]
    licensed = kept(record, "train")
    assert licensed["license"] == ["https://example.com/license.xml", "contract 1"]
    assert "attribution" not in licensed


@pytest.mark.parametrize(
    ("host", "reference", "named"),
    [
        ("127.0.0.1", "contract 2026/14", ["contract 2026/14"]),
        ("*.b.test", "A: b, c", ["A: b, c"]),
        ("b.test", "", None),
    ],
)
def test_a_licence_of_the_operators_is_named_by_its_reference(
    host: str, reference: str, named: list[str] | None
) -> None:
    agent = Agent(
        "testbot",
        uses=("train",),
        arrangements=(Arrangement(host, uses=frozenset(("train",)), reference=reference),),
    )
    origin = f"http://{host.replace('*', 'a')}"
    page = Site.from_files(origin, {"/robots.txt": b"Content-Signal: ai-train=no\n"}).page(
        agent, f"{origin}/a", now=NOW
    )
    assert kept({"permissions": page.permissions}, "train").get("license") == named


@pytest.mark.parametrize(
    ("said", "stay"),
    [
        (None, False),
        ({"until": "2026-11-21T11:00:00Z"}, False),
        ({"until": "2027-01-01T00:00:00Z"}, True),
    ],
)
def test_embedded_files(make_record: MakeRecord, said: Any, stay: bool) -> None:
    images = [{"url": "https://example.com/1.png", "path": "full/1.png"}]
    record = make_record(
        train={}, index={}, embedded={"train": said}, fields={"images": images, "files": []}
    )
    assert kept(record, "train")["images"] == (images if stay else [])
    assert kept(record, "index")["images"] == images


@pytest.mark.requirement("META-3", "MEET-5")
def test_files_in_a_field_that_a_setting_names(make_record: MakeRecord) -> None:
    """For example FILES_RESULT_FIELD.

    The fields are recognised by the members that media pipelines give to each file."""
    stored = [
        {
            "url": f"https://example.com/{n}.pdf",
            "path": f"full/{n}.pdf",
            "checksum": "0",
            "status": "new",
        }
        for n in range(2)
    ]
    fields = {"documents": stored, "shops": [{"url": "https://example.com/shop", "path": "a"}]}
    refused = kept(make_record(train={}, embedded={"train": None}, fields=fields), "train")
    assert (refused["documents"], refused["shops"]) == ([], fields["shops"])
    of_element = make_record(
        train={}, elements=[{"urls": ["https://example.com/0.pdf"]}], fields=fields
    )
    assert kept(of_element, "train")["documents"] == stored[1:]
    of_unknown = make_record(
        train={}, elements=[{"more_urls": True}], fields={**fields, "file_urls": [stored[0]["url"]]}
    )
    assert kept(of_unknown, "train")["documents"] == stored[:1]


# All together


SPAN = st.sampled_from(["text", "title"]).flatmap(
    lambda field: st.tuples(st.just(field), st.integers(0, 12), st.integers(0, 12)).map(
        lambda span: [span[0], *sorted(span[1:])]
    )
) | st.tuples(st.just("links"), st.integers(0, 3)).map(list)
ELEMENT = st.fixed_dictionaries(
    {
        "deny": st.lists(st.sampled_from(["train", "return", "clip", "cite", "*"]), unique=True),
        "spans": st.lists(SPAN, max_size=3),
    }
)


@pytest.mark.requirement("MEET-5")
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=3 * settings().max_examples,
)
@given(
    st.lists(ELEMENT, max_size=4),
    st.sampled_from([("train",), ("present",), ("train", "present"), ("present-snippet", "train")]),
)
def test_nothing_of_what_is_refused_comes_out(
    make_record: MakeRecord, elements: list[Any], uses: tuple[str, ...]
) -> None:
    """Every character and member is found once, so that it is known where it came from."""
    fields = {"title": "ABCDEFGHIJKL", "text": "abcdefghijkl", "links": ["0", "1", "2", "3"]}
    said = {"train": {}, "present": {}, "present_snippet": {"max_chars": 6}}
    record = make_record(fields=fields, elements=elements, **said)
    answer = apply_terms(record, terms(*uses))
    if answer.record is None:
        assert answer.cause == "clip"
        return
    VALIDATOR.validate(answer.record["permissions"])

    def refused(deny: list[str]) -> bool:
        shows = any(use.startswith("present") for use in uses)
        return "*" in deny or ("train" in deny and "train" in uses) or ("return" in deny and shows)

    def covered(source: dict[str, Any], spans: list[Any]) -> set[str]:
        return {
            one
            for field, start, *end in spans
            for one in source[field][start : end[0] if end else start + 1]
        }

    out = {one for field in fields for one in answer.record[field]}
    for element, moved in zip(elements, answer.record["permissions"]["elements"], strict=True):
        if refused(element["deny"]):
            assert not out & covered(fields, element["spans"])
        else:
            assert covered(answer.record, moved["spans"]) == out & covered(fields, element["spans"])
    if "present-snippet" not in uses:
        gone = {
            one
            for element in elements
            if refused(element["deny"])
            for one in covered(fields, element["spans"])
        }
        assert out == {one for value in fields.values() for one in value} - gone


@pytest.mark.requirement("MEET-3", "ACAP-32")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(["train", "index", "genai"]), st.none() | st.integers(-5, 5)),
    st.sets(st.sampled_from(["train", "index", "genai"]), min_size=1),
)
def test_one_use_more_never_permits_more(
    make_record: MakeRecord, said: dict[str, Any], asked: set[str]
) -> None:
    hours = {
        use: None if number is None else {"until": (NOW + timedelta(hours=number)).isoformat()}
        for use, number in said.items()
    }
    record = make_record(**{"index": None} | hours)
    alone = {use: apply_terms(record, terms(use)).record is not None for use in asked}
    assert (apply_terms(record, terms(*asked)).record is not None) == all(alone.values())
    assert all(is_kept == ((said.get(use) or 0) > 0) for use, is_kept in alone.items())


@pytest.mark.requirement("MEET-3")
def test_a_page_as_comity_judges_it() -> None:
    robots = b"""ACAP-crawler: *
ACAP-allow-index: / time-limit=30-days
ACAP-allow-present-snippet: / max-length=5-words
Content-Signal: ai-train=no
"""
    agent = Agent("testbot", uses=("train", *map(str.lower, ACTIONS)))
    page = Site.from_files("https://example.com", {"/robots.txt": robots}).page(
        agent, "https://example.com/a", now=NOW
    )
    record = {
        "text": "Comity, the courtesy between nations, now for crawlers too.",
        "permissions": page.permissions,
    }
    assert why(record, "train").startswith("deny:")
    assert kept(record, "index") is record
    assert (
        kept(record, "index", "present-snippet")["text"] == "Comity, the courtesy between nations,"
    )
    assert (
        apply_terms(record, Terms.of(("index",), now=NOW + timedelta(days=30))).cause
        == "expired:index"
    )
    assert (
        apply_terms(record, Terms.of(("index",), now=NOW + timedelta(days=30, seconds=-1))).record
        is record
    )


# Another default than that of the crawl

STATEMENTS = st.lists(
    st.sampled_from(
        [
            b"ACAP-allow-index: / time-limit=30-days",
            b"ACAP-disallow-index: /",
            b"ACAP-disallow-preserve: /",
            b"ACAP-allow-present-snippet: / max-length=5-words",
            b"User-agent: *\nContent-Signal: search=yes",
            b"User-agent: *\nContent-Signal: search=no, ai-train=no",
            b"User-agent: *\nContent-Usage: bots=n",
            b"User-agent: *\nContent-Usage: train-ai=y",
        ]
    ),
    max_size=3,
)
HEADERS = st.lists(
    st.sampled_from(
        [
            b"max-snippet: 9",
            b"noindex",
            b"nosnippet",
            b"unavailable_after: 2026-11-20",
            b"noarchive",
            b"noai",
            b"all",
        ]
    ),
    max_size=2,
)


@pytest.mark.requirement("MEET-3")
@given(
    robots=STATEMENTS,
    headers=HEADERS,
    use=st.sampled_from(["index", "preserve", "present-snippet", "train"]),
    then=st.sampled_from([None, Verdict.ALLOW, Verdict.DENY]),
    now=st.sampled_from([Verdict.ALLOW, Verdict.DENY]),
)
def test_another_default_judges_as_if_the_crawl_had_had_it(
    robots: list[bytes], headers: list[bytes], use: str, then: Verdict | None, now: Verdict
) -> None:
    site = Site.from_files(
        "https://example.com", {"/robots.txt": b"ACAP-crawler: *\n" + b"\n".join(robots)}
    )

    def record(default: Verdict | None) -> dict[str, Any]:
        agent = Agent("testbot", uses=(use,), defaults={use: default} if default else {})
        page = site.page(
            agent,
            "https://example.com/a",
            headers=[(b"X-Robots-Tag", value) for value in headers],
            now=NOW,
        )
        return {
            "url": "https://example.com/a",
            "text": "Some words of the page, and more of them.",
            "permissions": page.permissions,
        }

    expected, found = (
        apply_terms(record(now), terms(use)),
        apply_terms(record(then), terms(use, defaults={use: now})),
    )
    assert found.cause == expected.cause
    if found.record is None:
        assert [one["rule"] for one in found.reasons] == [one["rule"] for one in expected.reasons]
        return
    assert expected.record
    VALIDATOR.validate(found.record["permissions"])
    tags = [one.pop("permissions") for one in (found.record, expected.record)]
    assert found.record == expected.record
    uses = [{**tag["uses"][use], "because": None} for tag in tags]
    assert uses[0] == uses[1]
    again = apply_terms(found.record | {"permissions": tags[0]}, terms(use))
    assert again.cause == ""  # it is in the tag, and need not be said again


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"stated": True}, "deny:comity.default"),  # as no tag of ours has it
        ({"part": "item"}, "deny:comity.default"),
        ({"rule": "comity.no-page"}, "deny:comity.no-page"),
        ({"missing": True}, "not-listed:index"),
    ],
)
def test_what_is_no_silence_stays_refused(
    make_record: MakeRecord, change: dict[str, Any], why: str
) -> None:
    record = make_record()
    tag = record["permissions"]
    reason = {
        "rule": "comity.default",
        "spec": "",
        "url": "COMITY_DEFAULTS",
        "part": "setting",
        "line": 0,
        "text": "",
    }
    tag["reasons"].append(reason | {key: value for key, value in change.items() if key in reason})
    tag["uses"]["present-snippet" if "missing" in change else "index"] = {
        "verdict": "deny",
        "stated": change.get("stated", False),
        "because": [len(tag["reasons"]) - 1],
    }
    use = "other" if "missing" in change else "index"
    answer = apply_terms(record, terms(use, defaults={use: Verdict.ALLOW}))
    assert answer.cause == why.replace("index", use)


def test_no_default_lifts_the_refusal_of_an_element(make_record: MakeRecord) -> None:
    record = make_record(elements=[{"spans": [["text", 0, 4]]}])
    tag = record["permissions"]
    tag["reasons"].append(
        {"rule": "comity.default", "spec": "", "url": "", "part": "setting", "line": 0, "text": ""}
    )
    tag["uses"]["train"] = {
        "verdict": "deny",
        "stated": False,
        "because": [len(tag["reasons"]) - 1],
    }
    found = kept(record, "train", defaults={"train": Verdict.ALLOW})
    assert found["text"] == " words of the page."
