"""The list of downloads has each capture that may be used, as it is in the index."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from comity.dataset.export.export import export
from comity.dataset.export.ranges import ranges
from comity.dataset.permissions.terms import Terms

if TYPE_CHECKING:
    from tests.dataset.conftest import MakeRecord


def test_a_capture_with_a_refused_element_is_listed(
    tmp_path: Path, make_record: MakeRecord
) -> None:
    """An export removes the fields in which the element may be. The place is not lost by it."""
    element = {"deny": ["train"], "spans": [], "names": ["warc_filename"]}
    row = make_record(train={}, elements=[element]) | {
        "warc_filename": "a.warc.gz",
        "warc_record_offset": 5,
        "warc_record_length": 2,
    }
    path = tmp_path / "tagged.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    terms = Terms.of(["train"], now=datetime.now(UTC))
    export([path], tmp_path / "exported.jsonl", terms)
    assert "warc_filename" not in json.loads((tmp_path / "exported.jsonl").read_bytes())
    listed = ranges([path], tmp_path / "list.curl", terms, "https://a.test")
    assert listed.counts.kept == 1
    assert 'range = "5-6"' in (tmp_path / "list.curl").read_text(encoding="ascii")
