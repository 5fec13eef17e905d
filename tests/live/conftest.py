"""Crawls of a list of URLs in a new process, and a proxy that tunnels."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.listener import Listener, copy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.certificates import Authority

PROGRAM = """
import json, sys
from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess

class Urls(Spider):
    name = "urls"

    async def start(self):
        for url in sys.argv[2:]:
            yield Request(url, errback=self.failed)

    def parse(self, response):
        print("came", response.url, flush=True)

    def failed(self, failure):
        print("failed", failure.request.url, flush=True)

process = AsyncCrawlerProcess(json.loads(sys.argv[1]))
process.crawl(Urls)
process.start()
"""


class CrawledUrls:
    def __init__(self, output: str, log: str) -> None:
        lines = [line.split(" ") for line in output.splitlines()]
        self.came = sorted(url for word, url in lines if word == "came")
        self.failed = sorted(url for word, url in lines if word == "failed")
        self.log = log


@pytest.fixture
def crawl_urls(mode: str, tmp_path: Path, authority: Authority) -> Callable[..., CrawledUrls]:
    """`crawl_urls(*urls, settings={}, **environment)` crawls in a process that trusts the authority."""

    def run(*urls: str, settings: dict[str, Any] | None = None, **environment: str) -> CrawledUrls:
        defaults = {
            "ADDONS": {"comity.crawler.addon.Addon": 100},
            "COMITY_STORE": str(tmp_path / "policies.sqlite"),
            "COMITY_AGENT": "testbot",
            "COMITY_MIN_DELAY": 0,
            "RETRY_TIMES": 0,
            "TWISTED_REACTOR_ENABLED": mode == "reactor",
        }
        command = [sys.executable, "-c", PROGRAM, json.dumps(defaults | (settings or {})), *urls]
        trusted = os.environ | {"SSL_CERT_FILE": str(authority.certificates)} | environment
        done = subprocess.run(
            command, env=trusted, capture_output=True, text=True, timeout=300, check=True
        )
        return CrawledUrls(done.stdout, done.stderr)

    return run


class ConnectProxy(Listener):
    """Tunnels to wherever it is asked, and notes that."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        super().__init__()
        self.url = f"http://name:secret@127.0.0.1:{self.port}"

    def handle(self, sock: socket.socket, host: str) -> None:
        with suppress(OSError), sock:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (data := sock.recv(65536)):
                    return
                head += data
            self.heads.append(head)
            target, _, port = head.split(b" ")[1].decode().rpartition(":")
            with socket.create_connection((target, int(port))) as onward:
                sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=copy, args=(onward, sock), daemon=True)
                back.start()
                copy(sock, onward)
                back.join()


@pytest.fixture
def connect_proxy() -> Iterator[ConnectProxy]:
    proxy = ConnectProxy()
    yield proxy
    proxy.close()
