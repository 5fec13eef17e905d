"""The table of kinds, without a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from comity.browser.kinds import DOCUMENT, KINDS, OTHER, SOCKET, UNTOLD, kind_of
from comity.policies.answers.request import XHR, kinds_of

DOCS = Path(__file__).parents[2] / "docs" / "browsers.md"


@pytest.mark.requirement("WEB-1")
@pytest.mark.parametrize("resource_type", sorted(KINDS))
def test_scripts_are_told_by_their_destination(resource_type: str) -> None:
    is_script = resource_type in ("XHR", "Fetch", "EventSource", "Prefetch", "Ping", "Preflight")
    kinds = kinds_of({"sec-fetch-dest": kind_of(resource_type).destination, "accept": "*/*"})
    assert (XHR in kinds) == is_script


def test_what_is_new_is_judged_like_a_document() -> None:
    assert kind_of("FedCM") is OTHER
    assert not OTHER.is_part
    assert not DOCUMENT.is_part


def test_the_table_is_documented() -> None:
    text = DOCS.read_text("utf-8")
    assert [resource_type for resource_type in KINDS if f"`{resource_type}`" not in text] == []
    assert [
        kind.name for kind in (*KINDS.values(), SOCKET, UNTOLD) if f"`{kind.name}`" not in text
    ] == []
