"""What a key costs while a robots.txt of 500 KiB is edited with the language server: a real one, over standard input and output.

    python benchmarks/editing.py [KEYS]

A key is what an editor sends then: the change, and the questions that follow it. Measured is the time until a question is
answered that came right behind the change: whatever blocks the server delays it. Meanwhile other processes look at the file."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

SIZE = 500 * 1024
COMMAND = (
    sys.executable,
    "-c",
    "import sys; from comity.cli import main; sys.exit(main())",
    "languageserver",
)


def robots() -> str:
    """Groups of twenty rules, of various forms."""
    text, number = [], 0
    size = 0
    while size < SIZE:
        lines = [f"User-agent: bot{number}\n"] + [
            f"{'Allow' if rule % 3 else 'Disallow'}: /folder{number}/{rule}*/page.html$\n"
            for rule in range(20)
        ]
        block = "".join([*lines, "Content-Usage: train-ai=n\n", "\n"])
        text.append(block)
        size += len(block)
        number += 1
    return "".join(text)


async def main(keys: int) -> None:
    text = robots()
    lines = text.count("\n")
    client = LanguageClient("benchmark", "1")

    client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: None)
    with TemporaryDirectory() as folder:
        await client.start_io(*COMMAND)
        folders = [lsp.WorkspaceFolder(Path(folder).as_uri(), "site")]
        parameters = lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(), workspace_folders=folders
        )
        await client.initialize_async(parameters)
        client.initialized(lsp.InitializedParams())
        uri = (Path(folder) / "robots.txt").as_uri()
        document = lsp.TextDocumentIdentifier(uri)
        client.text_document_did_open(
            lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "robots", 0, text))
        )
        await client.text_document_folding_range_async(
            lsp.FoldingRangeParams(document)
        )  # the workers have begun
        blocked, completed, named, looked = [], [], [], []
        line = lines // 2
        naming = max(
            number
            for number, of in enumerate(text.splitlines()[:line])
            if of.startswith("User-agent")
        )
        in_agent = lsp.Position(naming, len("User-agent: b"))
        for number in range(1, keys + 1):
            place = lsp.Range(lsp.Position(line, 0), lsp.Position(line, 0))
            changed = lsp.TextDocumentContentChangePartial(place, "x" if number % 10 else "\n")
            versioned = lsp.VersionedTextDocumentIdentifier(number, uri)
            start = time.perf_counter()
            client.text_document_did_change(lsp.DidChangeTextDocumentParams(versioned, [changed]))
            position = lsp.Position(line, 1)
            shown = asyncio.ensure_future(
                client.text_document_hover_async(
                    lsp.HoverParams(lsp.TextDocumentIdentifier(""), position)
                )
            )
            typed = asyncio.ensure_future(
                client.text_document_completion_async(lsp.CompletionParams(document, position))
            )
            of_agent = asyncio.ensure_future(
                client.text_document_completion_async(lsp.CompletionParams(document, in_agent))
            )
            seen = lsp.Range(lsp.Position(line - 30, 0), lsp.Position(line + 30, 0))
            asked = asyncio.ensure_future(
                client.text_document_semantic_tokens_range_async(
                    lsp.SemanticTokensRangeParams(document, seen)
                )
            )
            await shown
            blocked.append(time.perf_counter() - start)
            await typed
            completed.append(time.perf_counter() - start)
            await of_agent
            named.append(time.perf_counter() - start)
            await asked
            looked.append(time.perf_counter() - start)
            await asyncio.sleep(0.05)
        measured = {
            "the server answers again": blocked,
            "completion": completed,
            "completion of an agent": named,
            "tokens that are seen": looked,
        }
        for name, times in measured.items():
            parts = quantiles(times, n=20)
            median, high = sorted(times)[len(times) // 2] * 1000, parts[18] * 1000
            print(
                f"{name:26} median {median:7.1f} ms   p95 {high:7.1f} ms   most {max(times) * 1000:7.1f} ms"
            )
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
