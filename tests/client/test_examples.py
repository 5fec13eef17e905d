"""The agents in examples/ run, and print the pages that they read and their permitted uses."""

from __future__ import annotations

import asyncio
import json
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


@pytest.mark.requirement("AIT-16")
def test_a_tool_stops_calls_that_the_site_refuses(
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """The model sees the page for permitted actions only, without the refused elements."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    ai_txt = """\
User-agent: *
    Path: /
        Element: p.secret
            Disallow: Summarize
        Element: h1
            Guide: Summarize
                Lang: en
                Guideline: Begin with this title.
        Element: *
            Disallow: Translate
"""
    server = serve(
        {
            "/robots.txt": "User-agent: *\nDisallow: /no\n",
            "/ai.txt": serve.Answer(ai_txt, content_type="text/plain"),
            "/": '<h1>Title</h1><p class="secret">hidden</p><p>shown</p>',
        }
    )
    inputs = [
        {"url": server.url("/"), "action": "Summarize"},
        {"url": server.url("/"), "action": "Translate"},
        {"url": server.url("/no"), "action": "Summarize"},
        {"url": server.url("/"), "action": "Train"},
        {"url": server.url("/")},
    ]
    calls = [json.dumps({"id": str(n), "input": value}) for n, value in enumerate(inputs)]
    main = runpy.run_path(str(EXAMPLES / "agent_tool.py"))["main"]
    asyncio.run(main(calls))
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(result["id"], result["is_error"]) for result in results] == [
        ("0", False),
        ("1", True),
        ("2", True),
        ("3", True),
        ("4", True),
    ]
    prompt, page = results[0]["content"]
    assert 'Guideline "Begin with this title."' in prompt
    assert "Make no summary of it." in prompt
    assert "shown" in page
    assert "hidden" not in page
    assert "Disallow: Translate" in results[1]["content"][0]
    assert "robots.disallow" in results[2]["content"][0]
    assert "hidden" not in "".join(text for result in results[1:] for text in result["content"])
    assert "/no" not in server.paths
