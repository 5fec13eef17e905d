"""A store is found by the scheme of its URL, among the entry points `comity.state`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from comity.cluster.redis.state import RedisState
from comity.cluster.state import SharedState, open_state
from comity.policies import PolicyError

SECRET = "s3cret"
made: Callable[..., SharedState] = RedisState  # mypy compares it with the Protocols


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, *points: str) -> None:
    """Install a package with these entry points."""
    about = folder / "a_store-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: a-store\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join(["[comity.state]", *points]))
    monkeypatch.syspath_prepend(folder)


@pytest.mark.requirement("STATE-1")
@pytest.mark.parametrize("scheme", ["redis", "REDIS", "rediss", "redis+cluster", "rediss+cluster"])
def test_the_scheme_names_the_class(scheme: str) -> None:
    state = open_state(f"{scheme}://me:{SECRET}@a.example:7000", "news", 10.0)
    assert isinstance(state, RedisState)
    assert state.address.crawl == "news"
    assert str(state.address).startswith(f"{scheme.lower()}://a.example:7000")


@pytest.mark.requirement("STATE-1")
@pytest.mark.parametrize("url", [f"http://me:{SECRET}@a.example", f"me:{SECRET}@a.example", ""])
def test_an_unknown_scheme_is_refused_with_those_that_are_installed(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "tikv = nowhere:Store")
    with pytest.raises(PolicyError) as raised:
        open_state(url, "news", 10.0)
    message = str(raised.value)
    assert message.startswith("COMITY_STATE: its scheme is not one of ")
    assert {"redis", "rediss", "redis+cluster", "rediss+cluster", "tikv"} <= set(
        message.partition("not one of ")[2].partition(":")[0].split(", ")
    )
    assert SECRET not in message


@pytest.mark.requirement("STATE-1")
@pytest.mark.parametrize(
    ("point", "reason"),
    [
        ("nowhere:Store", "ModuleNotFoundError: No module named 'nowhere'"),
        ("math:Store", "AttributeError: module 'math' has no attribute 'Store'"),
    ],
)
def test_a_store_that_cannot_be_loaded_ends_only_crawls_that_use_it(
    point: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, f"tikv = {point}", f"redis = {point}")
    assert isinstance(open_state("redis://a.example", "news", 10.0), RedisState)
    with pytest.raises(PolicyError) as raised:
        open_state(f"tikv://me:{SECRET}@a.example", "news", 10.0)
    assert str(raised.value) == (
        f"COMITY_STATE: the store `tikv` of a-store cannot be loaded ({reason}):"
        " mend or uninstall it"
    )


@pytest.mark.requirement("STATE-1")
@pytest.mark.usefixtures("new_processes")
def test_a_missing_extra_is_named() -> None:
    program = (
        "import sys\n"
        "sys.modules['redis'] = None\n"
        "from comity.cluster.state import open_state\n"
        "from comity.policies import PolicyError\n"
        "try:\n"
        "    open_state('redis://:s3cret@a.example', 'news', 10.0)\n"
        "except PolicyError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == 'COMITY_STATE needs redis: pip install "comity[redis]"\n'
