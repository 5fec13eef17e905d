"""The tests of this folder run with both parsers of HTML, by `make test` or `make test-all`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from comity.policies.document import html


@pytest.fixture(
    scope="module",
    autouse=True,
    params=["turbohtml", pytest.param("tinyhtml5", marks=pytest.mark.slow)],
)
def parser(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the parser in use."""
    before = [*html._chosen]
    html.choose(request.param)
    yield request.param
    html._chosen[:] = before
