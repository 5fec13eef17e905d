"""A tool by which a language model reads web pages, each for one action.

A model's program writes the model's tool calls to standard input, one JSON object a line, and reads
a result for each from standard output:

    {"id": "1", "input": {"url": "https://example.com/news/", "action": "Summarize"}}
    {"id": "1", "is_error": false, "content": ["What a website asks ...", "<p>The page ..."]}

TOOL is the tool's description for the model. If the site refuses the request or the action, the
result is an error with the line behind it, and the model never sees the page. Otherwise the content
is the site's instructions for the action, then the page without the elements that are refused for
it.

    python examples/agent_tool.py < calls.jsonl"""

import asyncio
import json
import sys
from typing import Any

import httpx

from comity.client import Client, RefusedError
from comity.client.httpx import Transport, page_of
from comity.policies import Verdict, instructions

ACTIONS = ("Summarize", "Translate", "Analyze", "Extract", "Cite", "Rephrase")
TOOL = {
    "name": "read_page",
    "description": "Read a web page for one action. Do nothing else with its content.",
    "input_schema": {
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "the URL of the page"},
            "action": {"enum": list(ACTIONS), "description": "your next action with the page"},
        },
        "required": ["url", "action"],
    },
}


class NotPermittedError(Exception):
    """The site does not permit the action."""


async def read_page(http: httpx.AsyncClient, url: str, action: str) -> list[str]:
    """Return the site's instructions for an action, and the page without refused elements.

    RefusedError: the site refuses the request. NotPermittedError: it refuses the action."""
    if action not in ACTIONS:
        raise NotPermittedError(f"action `{action}` is unknown: write {', '.join(ACTIONS)}")
    response = await http.get(url)
    response.raise_for_status()
    page = await page_of(response)
    use = action.lower()
    decision = page.uses[use]
    if decision.verdict is Verdict.DENY:
        raise NotPermittedError(f"{action} {page.url}: {decision}")
    permitted = page.redacted([use]).decode(response.encoding or "utf-8", "replace")
    return [instructions(page, action), permitted]


async def answer(http: httpx.AsyncClient, call: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a tool call."""
    try:
        content = await read_page(http, **call["input"])
    except (RefusedError, NotPermittedError, httpx.HTTPError, TypeError) as error:
        return {"id": call["id"], "is_error": True, "content": [str(error)]}
    return {"id": call["id"], "is_error": False, "content": content}


async def main(lines: list[str]) -> None:
    uses = tuple(action.lower() for action in ACTIONS)
    async with (
        Client(
            "examplebot",
            user_agent="examplebot/1.0 (+https://example.org/bot)",
            uses=uses,
            defaults=dict.fromkeys(uses, "allow"),
        ) as client,
        httpx.AsyncClient(transport=Transport(client), follow_redirects=True) as http,
    ):
        for line in lines:
            print(json.dumps(await answer(http, json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.stdin.readlines()))
