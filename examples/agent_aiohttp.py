"""An agent that reads pages with aiohttp, and says what may be done with each.

python examples/agent_aiohttp.py URL..."""

import asyncio
import sys

import aiohttp

from comity.client import Client, RefusedError
from comity.client.aiohttp import middleware, page_of


async def main(urls: list[str]) -> None:
    async with (
        Client(
            "examplebot", user_agent="examplebot/1.0 (+https://example.org/bot)", uses=("ai-input",)
        ) as client,
        aiohttp.ClientSession(middlewares=(middleware(client),)) as session,
    ):
        for url in urls:
            try:
                async with session.get(url) as response:
                    page = await page_of(response)
            except RefusedError as refused:
                print(refused)
                continue
            print(f"{response.url}: {response.status}, ai-input: {page.uses['ai-input']}")
        print(f"{client.counts.asked} asked for, refused: {client.counts.refused}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
