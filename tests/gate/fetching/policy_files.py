"""Policy files, as the store keeps them."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from comity.gate.fetching.policy_copy import PolicyFile
from comity.gate.fetching.reach import Reach
from comity.policies import Fetched


def utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


answers = st.builds(
    Fetched,
    status=st.integers(0, 999),
    headers=st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=9)), max_size=3).map(
        tuple
    ),
    body=st.binary(max_size=99),
    url=st.text(max_size=9),
    fetched_at=st.none() | st.integers(1, 4_000_000_000).map(utc),
    error=st.text(max_size=9),
    oversized=st.booleans(),
)


def policy_files(failures: st.SearchStrategy[Fetched]) -> st.SearchStrategy[PolicyFile]:
    return st.builds(
        PolicyFile,
        due=st.floats(0, 4e9),
        copy=st.none() | answers,
        failure=st.none() | failures,
        failing_since=st.none() | st.integers(1, 4_000_000_000).map(utc),
        failures=st.integers(0, 99),
        reach=st.sampled_from(Reach),
    )
