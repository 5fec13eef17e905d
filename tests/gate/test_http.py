"""Requests of clients and browsers: their senders frame the body."""

from __future__ import annotations

import pytest

from comity.gate.http import Headers, PlainRequest
from comity.gate.request.facts import check_target
from comity.gate.request.passage import Passage


@pytest.mark.parametrize("name", ["Content-Length", "content-length", b"TRANSFER-ENCODING"])
def test_header_fields_that_frame_a_body_are_left_out(name: str | bytes) -> None:
    request = PlainRequest(
        "https://example.com/", method="POST", headers=Headers({name: "5", "Accept": "text/html"})
    )
    assert request.headers == {b"Accept": [b"text/html"]}
    check_target(request, Passage())  # which refuses a length that the body does not have
