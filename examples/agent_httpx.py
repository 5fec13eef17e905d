"""An agent that reads pages with httpx, and says what may be done with each.

python examples/agent_httpx.py URL..."""

import asyncio
import sys

import httpx

from comity.client import Client, RefusedError
from comity.client.httpx import Transport, page_of


async def main(urls: list[str]) -> None:
    async with (
        Client(
            "examplebot", user_agent="examplebot/1.0 (+https://example.org/bot)", uses=("ai-input",)
        ) as client,
        httpx.AsyncClient(transport=Transport(client), follow_redirects=True) as http,
    ):
        for url in urls:
            try:
                response = await http.get(url)
            except RefusedError as refused:
                print(refused)
                continue
            page = await page_of(response)
            print(f"{response.url}: {response.status_code}, ai-input: {page.uses['ai-input']}")
        print(f"{client.counts.asked} asked for, refused: {client.counts.refused}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
