"""An external sort: the pairs of all runs come out in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from comity.dataset.execution.sorted_runs import SortedRuns

Pairs = st.lists(st.tuples(st.integers(), st.text()), max_size=700)


@given(st.lists(Pairs, max_size=4))
def test_runs_come_out_in_the_order_of_their_keys(runs: list[list[tuple[int, str]]]) -> None:
    sorted_runs: SortedRuns[int, str] = SortedRuns()
    for run in runs:
        sorted_runs.add(sorted(run))
    everything = [pair for run in runs for pair in run]
    for _ in range(2):
        assert sorted(sorted_runs) == sorted(everything)
        assert [key for key, _ in sorted_runs] == sorted(key for key, _ in everything)
    assert bool(sorted_runs) is bool(runs)
