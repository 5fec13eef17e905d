"""The examples of docs/existing-data.md: other machinery tags as the command does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comity.dataset import tagger
from comity.dataset.batches import Terms, UsableBatches
from comity.dataset.tagged_batches import TaggedBatches
from tests.dataset.tagging.archives import NOW, Policies
from tests.dataset.tagging.test_tagging import ALLOWED, DATE, OWN, SITES, URLS

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ROWS = [{"url": url, "date": DATE, "text": f"Text of {url}"} for url in URLS]


@pytest.fixture
def tag() -> TaggedBatches:
    made: TaggedBatches = tagger(Policies(SITES), OWN, ["train"], now=NOW)
    return made


def allowed(rows: list[dict[str, Any]]) -> list[str]:
    """Of rows as columns have them."""
    return [
        row["url"]
        for row in rows
        for use in row["permissions"]["uses"]
        if (use["use"], use["verdict"]) == ("train", "allow")
    ]


def test_duckdb(tag: TaggedBatches) -> None:
    import duckdb

    tagged = tag(pa.Table.from_pylist(ROWS))
    query = (
        "SELECT url FROM tagged WHERE list_filter(permissions.uses, lambda u: u.use = "
        "'train')[1].verdict = 'allow'"
    )
    found = duckdb.sql(query)
    assert found is not None
    assert [url for (url,) in found.fetchall()] == ALLOWED
    assert tagged.num_rows == len(URLS)


def test_polars(tag: TaggedBatches) -> None:
    import polars

    tagged = polars.from_arrow(tag(polars.DataFrame(ROWS).to_arrow()))
    assert isinstance(tagged, polars.DataFrame)
    assert allowed(tagged.to_dicts()) == ALLOWED


def test_hugging_face_datasets(tag: TaggedBatches) -> None:
    import datasets

    dataset = datasets.Dataset.from_list(ROWS).with_format("arrow")
    tagged = dataset.map(tag, batched=True, batch_size=3).with_format(None)
    assert allowed(list(tagged)) == ALLOWED


def test_ray_data(tag: TaggedBatches, tmp_path: Path) -> None:
    import ray

    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "in.parquet")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        data = ray.data.read_parquet(str(tmp_path / "in.parquet"))
        tagged = data.map_batches(tag, batch_format="pyarrow").map_batches(
            UsableBatches(Terms.of(["train"], now=NOW)), batch_format="pyarrow"
        )
        assert sorted(row["url"] for row in tagged.take_all()) == sorted(ALLOWED)
    finally:
        ray.shutdown()


def test_datatrove(tag: TaggedBatches, tmp_path: Path) -> None:
    from datatrove.pipeline.readers import ParquetReader

    from comity.dataset.datatrove import PermittedFilter

    (tmp_path / "tagged").mkdir()
    pq.write_table(tag(pa.Table.from_pylist(ROWS)), tmp_path / "tagged" / "a.parquet")
    documents = ParquetReader(str(tmp_path / "tagged"), glob_pattern="*.parquet")()
    kept = PermittedFilter(Terms.of(["train"], now=NOW)).run(documents)
    assert [document.metadata["url"] for document in kept] == ALLOWED
