"""`comity profile`: the list of profiles. tests/live/test_profiles.py has the list of each."""

from __future__ import annotations

import pytest

from comity.cli import main
from comity.gate.options.profiles import PROFILES


def test_without_a_name_all_profiles_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile"]) == 0
    head, columns, *rows = capsys.readouterr().out.splitlines()
    assert (head, columns.split()) == ("The profiles", ["profile", "for"])
    assert [row.split(maxsplit=1) for row in rows] == [
        [name, profile.wish] for name, profile in PROFILES.items()
    ]


def test_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "archiv"]) == 2
    assert capsys.readouterr().err == (
        "comity profile: PROFILE `archiv` is not a profile: did you mean `archive`? Else write"
        " search, archive, training, research or monitoring\n"
    )
