"""Folders of Hugging Face keep their layout, and `datasets` opens the new folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from comity.dataset.expire import expire
from comity.dataset.export.folder_export import export_folder
from comity.dataset.files.folders import open_dataset
from comity.dataset.permissions.terms import Terms
from comity.dataset.records import DatasetError
from comity.dataset.tagging.folder_tagging import tag_folder
from comity.dataset.tagging.judging import Judge
from comity.dataset.tagging.question import Question
from tests.dataset.tagging.archives import NOW, Policies
from tests.dataset.tagging.test_tagging import ALLOWED, DATE, OWN, SITES, URLS
from tests.selection import one_in

# `datasets` warns of its own dependencies.
pytestmark = pytest.mark.filterwarnings("ignore")
JUDGE = Judge(Question.of(OWN, now=NOW), Policies(SITES))
TERMS = Terms.of(["train"], now=NOW)
ROWS = [
    {"url": url, "date": DATE, "text": "t", "label": number % 2, "score": 0.5, "tags": ["a"]}
    for number, url in enumerate(URLS)
]
README = """---
license: odc-by
dataset_info:
  features:
  - name: url
    dtype: string
  splits:
  - name: train
    num_examples: 8
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*.csv
---
# A dataset
"""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library `datasets`, with its caches in the folder of the test."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return datasets


def saved(hub: Any, path: Path) -> Path:
    made = hub.Dataset.from_list(ROWS).cast_column("label", hub.ClassLabel(names=["no", "yes"]))
    made.save_to_disk(path, num_shards=2)
    return path


def urls_of(rows: Any) -> list[str]:
    return [*rows["url"]]


def is_allowed(row: dict[str, Any]) -> bool:
    [use] = [use for use in row["permissions"]["uses"] if use["use"] == "train"]
    return bool(use["verdict"] == "allow")


def test_a_saved_dataset(hub: Any, tmp_path: Path) -> None:
    path = saved(hub, tmp_path / "in")
    hub.load_from_disk(path).map(lambda row: row)  # leaves a cache in the folder
    assert [*path.glob("cache-*.arrow")]
    tag_folder([path], tmp_path / "tagged", JUDGE)
    tagged = hub.load_from_disk(tmp_path / "tagged")
    assert urls_of(tagged) == URLS
    assert tagged.features["label"] == hub.ClassLabel(names=["no", "yes"])
    assert [row["url"] for row in tagged if is_allowed(row)] == ALLOWED
    assert tagged._fingerprint != hub.load_from_disk(path)._fingerprint
    export_folder([tmp_path / "tagged"], tmp_path / "train", TERMS)
    assert urls_of(hub.load_from_disk(tmp_path / "train")) == ALLOWED
    tag_folder([path], tmp_path / "tagged", JUDGE)  # again
    expire([tmp_path / "tagged"], NOW, [URLS[0]])
    assert urls_of(hub.load_from_disk(tmp_path / "tagged")) == URLS[1:]


def test_a_saved_dataset_dict(hub: Any, tmp_path: Path) -> None:
    rows = hub.Dataset.from_list(ROWS)
    hub.DatasetDict({"train": rows, "test": rows.select(range(2))}).save_to_disk(tmp_path / "in")
    tag_folder([tmp_path / "in"], tmp_path / "tagged", JUDGE)
    tagged = hub.load_from_disk(tmp_path / "tagged")
    assert {name: urls_of(split) for name, split in tagged.items()} == {
        "train": URLS,
        "test": URLS[:2],
    }


WRITERS: list[tuple[str, Callable[[Any, Path], object]]] = [
    (".parquet", lambda rows, path: rows.to_parquet(path)),
    (".jsonl", lambda rows, path: rows.to_json(path)),
    (".csv", lambda rows, path: rows.remove_columns("tags").to_csv(path)),
]


@pytest.mark.parametrize(("ending", "write"), one_in(3, WRITERS))
def test_a_repository(
    hub: Any, tmp_path: Path, ending: str, write: Callable[[Any, Path], object]
) -> None:
    path = tmp_path / "in"
    (path / "data").mkdir(parents=True)
    for number in range(2):
        rows = hub.Dataset.from_list(ROWS[4 * number : 4 * number + 4])
        write(rows, path / "data" / f"train-0000{number}-of-00002{ending}")
    (path / "README.md").write_text(README.replace(".csv", ending))
    tag_folder([path], tmp_path / "tagged", JUDGE, ending=".parquet")
    tagged = hub.load_dataset(str(tmp_path / "tagged"), split="train")
    assert urls_of(tagged) == URLS
    assert "permissions" in tagged.column_names
    text = (tmp_path / "tagged" / "README.md").read_text()
    assert text.startswith("---\nlicense: odc-by\nconfigs:\n")
    assert "path: data/train-*.parquet\n" in text
    assert text.endswith("---\n# A dataset\n")
    tag_folder([path], tmp_path / "tagged", JUDGE, ending=".parquet")  # again
    (tmp_path / "tagged" / "README.md").write_text("# Mine")
    with pytest.raises(DatasetError, match=r"holds README\.md, which comity has not written"):
        tag_folder([path], tmp_path / "tagged", JUDGE, ending=".parquet")
    assert (tmp_path / "tagged" / "README.md").read_text() == "# Mine"


def test_another_ending_is_no_saved_dataset(hub: Any, tmp_path: Path) -> None:
    path = saved(hub, tmp_path / "in")
    tag_folder([path], tmp_path / "tagged", JUDGE, ending=".parquet")
    names = {file.name for file in (tmp_path / "tagged").iterdir()}
    assert names == {f"data-0000{number}-of-00002.parquet" for number in range(2)}


@pytest.mark.parametrize("octets", one_in(3, [b"{", b"[]", b"[" * 100_000]))
@pytest.mark.parametrize("name", ["state.json", "dataset_info.json"])
def test_a_damaged_description_is_named(hub: Any, tmp_path: Path, name: str, octets: bytes) -> None:
    path = saved(hub, tmp_path / "in")
    (path / name).write_bytes(octets)
    with pytest.raises(DatasetError, match=rf"{name} (cannot be read|is not an object)"):
        tag_folder([path], tmp_path / "tagged", JUDGE)
    assert not (tmp_path / "tagged").exists()


def test_files_of_a_folder_that_comity_did_not_write_stay(hub: Any, tmp_path: Path) -> None:
    path = saved(hub, tmp_path / "in")
    other = saved(hub, tmp_path / "other")
    with pytest.raises(DatasetError, match="which comity has not written"):
        tag_folder([path], other, JUDGE)
    assert len(open_dataset(other).files) == 2
