"""The agents in examples/ run, and print the pages that they read and their permitted uses."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import certifi
import pytest

if TYPE_CHECKING:
    from tests.conftest import Serve

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.requirement("WEB-3")
@pytest.mark.parametrize("name", ["agent_httpx.py", "agent_aiohttp.py"])
def test_the_agents_print_their_permissions(
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))  # the folder of the default store
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    robots = "User-agent: *\nDisallow: /no\nContent-Signal: ai-input=yes\n"
    server = serve(
        {
            "/robots.txt": robots,
            "/": "<p>a page</p>",
            "/away": serve.Answer(status=302, headers={"Location": "/no"}),
        }
    )
    main = runpy.run_path(str(EXAMPLES / name))["main"]
    asyncio.run(main([server.url("/"), server.url("/away")]))
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{server.url('/')}: 200, ai-input: allow: ")
    assert f"{server.url('/robots.txt')}:3: 'Content-Signal: ai-input=yes'" in first
    assert second.startswith(f"GET {server.url('/no')}: deny: robots.disallow")
    assert last == "2 asked for, refused: {'robots.disallow': 1}"
    assert server.paths == ["/robots.txt", "/", "/away"]
    assert (tmp_path / "comity" / "policies.sqlite").exists()
