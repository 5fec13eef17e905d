"""Shows where two records of `record.py` differ: of each kind of case the first differences, with the place in the outcome.

    python tests/equality/compare.py A B [--first N]

Exit status: 0 equal, 1 different, 2 not to be compared, as the inputs differ."""

# ruff: noqa: T201  # a command

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_SHOWN = 300  # characters of a value
MAX_PLACES = 6  # of one case that are shown

EQUAL, DIFFERENT, OTHER_INPUTS = 0, 1, 2

_ABSENT = object()


def lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        yield from file


def differences(first: Any, second: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Places in two values, and what stands there; `_ABSENT` for nothing."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name in {**first, **second}:
            yield from differences(
                first.get(name, _ABSENT),
                second.get(name, _ABSENT),
                f"{place}.{name}" if place else name,
            )
        if first == second and [*first] != [*second]:
            yield f"{place} (order)", [*first], [*second]
    elif isinstance(first, list) and isinstance(second, list):
        pairs = itertools.zip_longest(first, second, fillvalue=_ABSENT)
        for number, (one, other) in enumerate(pairs):
            yield from differences(one, other, f"{place}[{number}]")
    elif type(first) is not type(second) or first != second:
        yield place, first, second


def shown(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ... ({len(text)} characters)"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("first", type=Path, metavar="A")
    parser.add_argument("second", type=Path, metavar="B")
    parser.add_argument(
        "--first",
        dest="most",
        type=int,
        default=3,
        metavar="N",
        help="cases of each kind (default: 3)",
    )
    given = parser.parse_args()
    cases: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for number, pair in enumerate(itertools.zip_longest(lines(given.first), lines(given.second))):
        if None in pair:
            longer = given.second if pair[0] is None else given.first
            print(
                f"{longer} has more than the {number} cases of the other: they are not compared",
                file=sys.stderr,
            )
            return OTHER_INPUTS
        first, second = map(json.loads, pair)
        if any(first[name] != second[name] for name in ("case", "kind", "inputs")):
            print(
                f"Case {number} has other inputs: record both with the same script, seed and number of cases",
                file=sys.stderr,
            )
            return OTHER_INPUTS
        kind = first["kind"]
        cases[kind] += 1
        if pair[0] == pair[1]:
            continue
        differing[kind] += 1
        if differing[kind] <= given.most:
            places = list(differences(first["outcome"], second["outcome"]))
            print(f"{kind}, case {number}: {len(places)} places")
            for place, one, other in places[:MAX_PLACES]:
                print(f"  {place}\n    - {shown(one)}\n    + {shown(other)}")
    for kind, total in cases.items():
        print(
            f"{kind}: {differing[kind]} of {total} cases differ"
            if differing[kind]
            else f"{kind}: {total} cases are equal"
        )
    return DIFFERENT if differing else EQUAL


if __name__ == "__main__":
    sys.exit(main())
