"""The audit: its figures are those of the dataset and of its evidence, and its page is safe."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from comity.dataset import manifest
from comity.dataset.audit import evidence
from comity.dataset.audit.audit import audit_of
from comity.dataset.counts import groups
from comity.dataset.evidence.schema import policies_path, refused_path
from comity.dataset.export.export import export
from comity.dataset.job import JobOptions
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies.syntax.urls import origin_or_empty
from comity.report.page import audit_page
from tests.dataset.evidence.test_tagging import (
    AGENT,
    DATE,
    SITES,
    judge,
    records,
    rows,
    source,
    sources,
)
from tests.dataset.tagging.archives import NOW, Policies

OPTIONS = JobOptions(1)


@pytest.fixture(params=["out.parquet", "out.jsonl", "out"])
def tagged(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    output: Path = tmp_path / request.param
    tag = tag_dataset if output.suffix else tag_folder
    tag([source(tmp_path, "jsonl")], output, judge(), options=OPTIONS._replace(evidence=sources))
    return output


def verdicts(output: Path) -> Counter[tuple[str, str, bool, str]]:
    """Origin, use, verdict and deciding rule of each use of each kept record."""
    found: Counter[tuple[str, str, bool, str]] = Counter()
    for record in records(output):
        tag = record["permissions"]
        for use in AGENT.uses:
            decision = tag["uses"][use]
            rule = tag["reasons"][decision["because"][0]]["rule"]
            key = origin_or_empty(record["url"]), use, decision["verdict"] == "allow", rule
            found[key] += 1
    return found


def sums(counts: Counter[Any], *indices: int) -> Counter[Any]:
    """The counts by some members of their keys."""
    summed: Counter[Any] = Counter()
    for key, number in counts.items():
        summed[tuple(key[index] for index in indices)] += number
    return summed


@pytest.mark.requirement("AUDIT-5")
def test_its_figures_are_those_of_the_dataset(tagged: Path) -> None:
    audit, found = audit_of(tagged, NOW, OPTIONS), verdicts(tagged)
    kept = records(tagged)
    assert (audit["set"]["records"], audit["set"]["uses"]) == (len(kept), ["train", "index"])
    assert audit["set"]["origins"] == len({origin_or_empty(one["url"]) for one in kept})
    for use in audit["uses"]:
        by_use = sums(found, 1, 2)
        assert use["allowed"] == by_use[use["use"], True]
        assert use["refused"] == by_use[use["use"], False]
    by_rule = {
        (one["rule"], one["use"], verdict == "allowed"): one[verdict]
        for one in audit["signals"]
        for verdict in ("allowed", "refused")
        if one[verdict]
    }
    assert by_rule == sums(found, 3, 1, 2)
    for one in audit["origins"]:
        pages = [record for record in kept if origin_or_empty(record["url"]) == one["origin"]]
        assert one["records"] == len(pages)
        assert one["allowed"] == {
            use: found_at
            for use in AGENT.uses
            for found_at in [sums(found, 0, 1, 2)[one["origin"], use, True]]
        }
    assert {month["month"]: month["records"] for month in audit["months"]} == {"2024-06": len(kept)}
    assert audit["unknown"]["unread"] == sum("is_unread" in one["permissions"] for one in kept)
    without = sum(
        any(reason["rule"] == "comity.no-policies" for reason in one["permissions"]["reasons"])
        for one in kept
    )
    assert audit["unknown"]["no_policies"] == without


@pytest.mark.requirement("AUDIT-5")
def test_its_figures_are_those_of_the_evidence(
    tagged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused, policies = rows(refused_path(tagged)), rows(policies_path(tagged))
    audit = audit_of(tagged, NOW, OPTIONS)
    dropped = {(row["file"], row["record"]) for row in refused if row["dropped"]}
    assert audit["refused"]["rows"] == len(refused)
    assert audit["refused"]["dropped"] == len(dropped) == 2
    by_reason = Counter((row["use"], row["rule"]) for row in refused)
    assert {
        (one["use"], one["rule"]): one["rows"] for one in audit["refused"]["reasons"]
    } == by_reason
    numbers = [one["rows"] for one in audit["refused"]["reasons"]]
    assert numbers == sorted(numbers, reverse=True)
    for one in audit["refused"]["reasons"]:
        alike = [row for row in refused if (row["use"], row["rule"]) == (one["use"], one["rule"])]
        assert one["dropped"] == sum(row["dropped"] for row in alike)
        assert [row["url"] for row in one["examples"]] == [row["url"] for row in alike[:3]]
        assert [row["line"] for row in one["examples"]] == [row["line"] for row in alike[:3]]
    assert audit["policies"]["copies"] == len(policies)
    assert audit["policies"]["files"] == len({row["url"] for row in policies})
    without = [row["url"] for row in policies if not row["status"]]
    assert audit["policies"]["without_copy"] == len(without)
    assert audit["unknown"]["examples_without_copy"] == without[:3]
    monkeypatch.setattr(groups, "MAX_HELD", 1)
    monkeypatch.setattr(evidence, "MAX_REASONS", 1)
    few = audit_of(tagged, NOW, OPTIONS)["refused"]
    assert sum(one["rows"] for one in few["reasons"]) == len(refused)
    assert few["dropped"] == len(dropped)


@pytest.mark.requirement("AUDIT-5")
def test_one_website_has_all_its_records(tagged: Path) -> None:
    one = audit_of(tagged, NOW, OPTIONS, origin="https://a.test")["publisher"]
    kept = [row for row in records(tagged) if origin_or_empty(row["url"]) == "https://a.test"]
    assert one["records"] == len(kept)
    assert [page["url"] for page in one["pages"]] == [row["url"] for row in kept]
    refused = [row for row in rows(refused_path(tagged)) if "//a.test" in row["url"]]
    assert [row["record"] for row in one["refused"]] == [row["record"] for row in refused]
    assert {row["url"] for row in one["copies"]} == {
        row["url"] for row in rows(policies_path(tagged)) if "//a.test" in row["url"]
    }
    [reason] = [row for row in one["reasons"] if row["rule"] == "robots.disallow"][:1]
    assert (reason["line"], reason["text"]) == (2, "Disallow: /private")
    assert audit_of(tagged, NOW, OPTIONS, origin="https://z.test")["publisher"]["records"] == 0


@pytest.mark.requirement("AUDIT-5")
def test_the_page_has_every_figure_and_loads_nothing(tagged: Path) -> None:
    audit = audit_of(tagged, NOW, OPTIONS, origin="https://a.test", contact="data@example.org")
    page = audit_page(audit)
    assert audit_page(json.loads(json.dumps(audit))) == page
    for one in audit["refused"]["reasons"]:
        assert f"<code>{one['rule']}</code>" in page
    for text in ("data@example.org", "Disallow: /private", *audit["publisher"]["commands"][1:]):
        assert text in page
    assert "to be filled by the maker" in page
    for forbidden in ("<script", "<img", "<link", "src=", "@import", "url("):
        assert forbidden not in page
    assert set(re.findall(r'href="([^"]*)"', page)) <= {
        f"#{name}" for name in re.findall(r' id="([^"]*)"', page)
    }
    assert "default-src &#39;none&#39;" in page


@pytest.mark.requirement("AUDIT-5", "SEC-4")
def test_texts_of_the_web_are_text(tmp_path: Path) -> None:
    evil = "</q><script>alert(1)</script>\u202e"
    robots = f"User-agent: *\nDisallow: /{evil}\nContent-Usage: /a train-ai=n {evil}\n"
    url = f"https://a.test/a?{evil}"
    (tmp_path / "in.jsonl").write_text(
        json.dumps({"url": url, "fetch_time": DATE, "fetch_status": 200})
    )
    policies = Policies({"https://a.test": {"/robots.txt": robots}})
    output = tmp_path / "<script>x.jsonl"
    question = Question.of(AGENT, now=NOW, captured_by="<script>bot")
    options = OPTIONS._replace(evidence=sources)
    tag_dataset([tmp_path / "in.jsonl"], output, Judge(question, policies), options=options)
    audit = audit_of(output, NOW, OPTIONS, origin="https://a.test", contact=evil)
    assert audit["publisher"]["records"] == 1
    page = audit_page(audit)
    assert "<script" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page


def spoil_manifest(output: Path) -> None:
    manifest.path_of(output).write_text("{")


def change_set(output: Path) -> None:
    output.write_bytes(output.read_bytes() + b"\n")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.requirement("AUDIT-5")
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda out: out.unlink(), ["out.jsonl does not exist"]),
        (
            lambda out: manifest.path_of(out).unlink(),
            ["the manifest, does not exist", "dataset tag"],
        ),
        (spoil_manifest, ["out.jsonl.croissant.json cannot be read"]),
        (change_set, ["out.jsonl differs from its manifest", "Write the dataset again"]),
        (lambda out: refused_path(out).unlink(), ["refused.parquet does not exist"]),
        (lambda out: policies_path(out).unlink(), ["policies.parquet does not exist"]),
        (lambda out: cut(refused_path(out)), ["refused.parquet is not the file", "again"]),
        (lambda out: cut(policies_path(out)), ["policies.parquet is not the file", "again"]),
    ],
)
def test_unusable_sets_are_one_line(tmp_path: Path, spoil: Any, words: Sequence[str]) -> None:
    output = tmp_path / "out.jsonl"
    options = OPTIONS._replace(evidence=sources)
    tag_dataset([source(tmp_path, "jsonl")], output, judge(), options=options)
    spoil(output)
    with pytest.raises(DatasetError) as error:
        audit_of(output, NOW, OPTIONS)
    message = str(error.value)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.requirement("AUDIT-5")
def test_the_readings_are_those_of_the_manifest(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    question = Question.of(AGENT, now=NOW, missing="allow", also=["GPTBot"], captured_by="CCBot")
    asked = Judge(question, Policies(SITES))
    tag_dataset(
        [source(tmp_path, "jsonl")],
        output,
        asked,
        options=OPTIONS._replace(evidence=sources),
        sources=["robots.warc.gz"],
    )
    audit = audit_of(output, NOW, OPTIONS)
    readings = audit["readings"]
    assert (readings["missing"], readings["also"]) == (["allow"], ["GPTBot"])
    assert (readings["captured_by"], readings["as_of"]) == (["CCBot"], ["capture"])
    assert (readings["policies"], audit["repeat"]) == (["robots.warc.gz"], None)
    fields = {
        field["field"]: field["value"] for one in audit["template"] for field in one["fields"]
    }
    assert fields["Crawler names"] == "CCBot"
    assert fields["Period of data collection"] == "2024-06 to 2024-06"
    assert fields["Versioned model name"] is None


@pytest.mark.requirement("AUDIT-5")
def test_an_export_of_two_tagged_sets(tmp_path: Path) -> None:
    """Its readings are those of both sets, and its dropped records those that the export left out."""
    given = source(tmp_path, "jsonl")
    options = OPTIONS._replace(evidence=sources)
    for name, as_of in (("a.jsonl", "capture"), ("b.jsonl", "both")):
        question = Question.of(AGENT, now=NOW, as_of=as_of)
        tag_dataset([given], tmp_path / name, Judge(question, Policies(SITES)), options=options)
    sets, exported = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "train.jsonl"
    export(sets, exported, Terms.of(["train"], now=NOW), options)
    audit = audit_of(exported, NOW, OPTIONS)
    kept = len(records(exported))
    assert audit["set"]["records"] == kept > 0
    assert audit["refused"]["dropped"] == sum(len(records(one)) for one in sets) - kept > 0
    assert audit["readings"]["agent"] == AGENT.token
    assert audit["readings"]["as_of"] == ["capture", "both"]
    assert "those of the day of the capture; both, and the stricter one" in audit_page(audit)
