"""The evidence beside a dataset in an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from comity.dataset.evidence.schema import policies_path, read, refused_path
from comity.dataset.files.formats import open_writer
from comity.dataset.job import JobOptions
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from comity.dataset.tagging.tagging import tag_dataset
from comity.policies import Agent, Verdict
from tests.dataset.tagging.archives import NOW, Policies

# Servers that threads serve, and the event loop of the store's library, end with warnings.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.requirement("AUDIT-1")
@pytest.mark.parametrize("name", ["out.jsonl", "out"])
def test_it_is_in_the_store(store: Path, name: str) -> None:
    output, path = store / name, store.with_name("in.jsonl")
    with open_writer(path) as writer:
        writer.write(writer.encode([{"url": "https://a.test/1", "date": "2024-06-01"}]))
    agent = Agent("examplebot", uses=("train",), defaults={"train": Verdict.ALLOW})
    policies = Policies({"https://a.test": {"/robots.txt": "User-agent: *\nDisallow: /\n"}})
    judge = Judge(Question.of(agent, now=NOW), policies)
    options = JobOptions(1, evidence=lambda copies: [None for _ in copies])
    tag = tag_dataset if output.suffix else tag_folder
    for _ in range(2):  # the second run replaces the files
        tag([path], output, judge, options=options)
    [row] = [row for batch in read(refused_path(output)) for row in batch.to_pylist()]
    assert (row["record"], row["rule"], row["dropped"]) == ("1", "robots.disallow", False)
    copies = [row for batch in read(policies_path(output)) for row in batch.to_pylist()]
    assert sum(copy["refused"] for copy in copies) == 1
    assert not [one for one in store.parent.iterdir() if one.name.startswith(".")]
