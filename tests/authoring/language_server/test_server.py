"""The language server as a process, driven like by an editor."""

from __future__ import annotations

import asyncio
import re
import sys
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pytest_lsp import LanguageClient, client_capabilities
from pytest_lsp.client import make_test_lsp_client
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from comity.authoring.commands import languageserver
from comity.cli import main
from comity.policies import PolicyError

COMMAND = (
    sys.executable,
    "-c",
    "import sys; from comity.cli import main; sys.exit(main())",
    "languageserver",
)
ROBOTS = (
    "User-agent: GPTBot\nDissallow: /x\nACAP-resource-set: art /a\nACAP-crawler: *\n"
    "ACAP-allow-index: the-acap:resource-set:art\n"
)
AI = "User-agent: *\n  Path: / html\n  Element: p\n      Disallow: Train\n"

# asyncio waits for its own processes, so none is forked from another.
pytestmark = pytest.mark.usefixtures("new_processes")

Session = Callable[[LanguageClient], Awaitable[None]]


def capabilities(*encodings: lsp.PositionEncodingKind) -> lsp.ClientCapabilities:
    """Return the capabilities of an editor with push diagnostics only."""
    general = (
        lsp.GeneralClientCapabilities(position_encodings=list(encodings)) if encodings else None
    )
    return lsp.ClientCapabilities(general=general)


@asynccontextmanager
async def session(folder: Path, of_client: lsp.ClientCapabilities) -> AsyncIterator[LanguageClient]:
    client = make_test_lsp_client()
    await client.start_io(*COMMAND)
    try:
        folders = [lsp.WorkspaceFolder(folder.as_uri(), "site")]
        await client.initialize_session(
            lsp.InitializeParams(capabilities=of_client, workspace_folders=folders)
        )
        yield client
        assert client.log_messages == []
    finally:  # or the client would wait for a server that does not end
        await client.shutdown_session()
        await client.stop()  # type: ignore[no-untyped-call]


def run(test: Callable[[], Any]) -> None:
    async def run_limited() -> None:
        async with asyncio.timeout(240):
            await test()

    asyncio.run(run_limited())


def open_file(
    client: LanguageClient, uri: str, text: str, *, language: str = "plaintext"
) -> lsp.TextDocumentIdentifier:
    item = lsp.TextDocumentItem(uri, language, 1, text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    return lsp.TextDocumentIdentifier(uri)


def change(
    client: LanguageClient, uri: str, version: int, place: lsp.Range | None, text: str
) -> None:
    event = (
        lsp.TextDocumentContentChangePartial(place, text)
        if place
        else lsp.TextDocumentContentChangeWholeDocument(text)
    )
    document = lsp.VersionedTextDocumentIdentifier(version, uri)
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [event]))


def here(line: int, column: int) -> lsp.Position:
    return lsp.Position(line, column)


def part(line: int, start: int, end: int) -> lsp.Range:
    return lsp.Range(here(line, start), here(line, end))


WHOLE = lsp.Range(here(0, 0), here(100, 0))


async def wait_for_diagnostics(
    client: LanguageClient, uri: str, is_expected: Callable[[list[Any]], bool]
) -> list[Any]:
    """Wait for the expected diagnostics, and return them."""
    while not (uri in client.diagnostics and is_expected(list(client.diagnostics[uri]))):
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    return list(client.diagnostics[uri])


@pytest.mark.requirement("IDE-1", "IDE-2", "IDE-3")
def test_an_editor_asks_for_everything(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<article>", "utf-8")

    async def talk() -> None:
        async with session(tmp_path, client_capabilities("visual_studio_code")) as client:
            uri = (tmp_path / "robots.txt").as_uri()
            document = open_file(client, uri, ROBOTS)
            report = await client.text_document_diagnostic_async(
                lsp.DocumentDiagnosticParams(document)
            )
            assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
            assert any(
                item.code == "robots.misspelled" and item.range.start.line == 1
                for item in report.items
            )
            completed = await client.text_document_completion_async(
                lsp.CompletionParams(document, here(1, 0))
            )
            assert isinstance(completed, lsp.CompletionList)
            assert "Disallow" in {item.label for item in completed.items}
            shown = await client.text_document_hover_async(lsp.HoverParams(document, here(0, 14)))
            assert shown
            assert isinstance(shown.contents, lsp.MarkupContent)
            assert "OpenAI" in shown.contents.value
            shown = await client.text_document_hover_async(lsp.HoverParams(document, here(1, 2)))
            assert shown
            assert isinstance(shown.contents, lsp.MarkupContent)
            assert "**Fix:** Correct the spelling of the name." in shown.contents.value
            place = here(4, 42)
            definition = await client.text_document_definition_async(
                lsp.DefinitionParams(document, place)
            )
            assert isinstance(definition, list | tuple)
            assert [
                location.range for location in definition if isinstance(location, lsp.Location)
            ] == [part(2, 19, 22)]
            context = lsp.ReferenceContext(include_declaration=False)
            references = await client.text_document_references_async(
                lsp.ReferenceParams(context, document, place)
            )
            assert [location.range for location in references or ()] == [part(4, 40, 43)]
            asked = await client.text_document_prepare_rename_async(
                lsp.PrepareRenameParams(document, place)
            )
            assert asked == part(4, 40, 43)
            renamed = await client.text_document_rename_async(
                lsp.RenameParams(document, place, "news")
            )
            assert renamed
            assert renamed.changes
            assert len(renamed.changes[uri]) == 2
            symbols = await client.text_document_document_symbol_async(
                lsp.DocumentSymbolParams(document)
            )
            assert len(symbols or ()) == 3
            folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(document))
            assert len(folds or ()) == 2
            tokens = await client.text_document_semantic_tokens_full_async(
                lsp.SemanticTokensParams(document)
            )
            assert tokens
            assert tokens.data
            some = await client.text_document_semantic_tokens_range_async(
                lsp.SemanticTokensRangeParams(document, part(0, 0, 1))
            )
            assert some
            assert list(some.data) == list(tokens.data)[: len(some.data)]
            hints = await client.text_document_inlay_hint_async(
                lsp.InlayHintParams(document, WHOLE)
            )
            assert "= disallow" in {str(hint.label).lower() for hint in hints or ()}
            lenses = await client.text_document_code_lens_async(lsp.CodeLensParams(document))
            assert [lens.command.title for lens in lenses or () if lens.command] == [
                "decides 0 of 1 sample URL"
            ] * 2

    run(talk)


@pytest.mark.requirement("IDE-5")
@pytest.mark.slow
def test_an_ai_txt_becomes_xml_from_the_editor(tmp_path: Path) -> None:
    async def talk() -> None:
        async with session(tmp_path, client_capabilities("visual_studio_code")) as client:
            document = open_file(client, (tmp_path / "ai.txt").as_uri(), AI)
            context = lsp.CodeActionContext([])
            found = await client.text_document_code_action_async(
                lsp.CodeActionParams(document, part(0, 0, 0), context)
            )
            (action,) = [
                each
                for each in found or ()
                if isinstance(each, lsp.CodeAction) and each.title.startswith("Generate")
            ]
            assert action.edit
            create, edit = action.edit.document_changes or ()
            assert isinstance(create, lsp.CreateFile)
            assert create.uri == (tmp_path / "ai.xml").as_uri()
            assert isinstance(edit, lsp.TextDocumentEdit)
            xml = getattr(edit.edits[0], "new_text", "")
            assert xml.startswith("<")
            (tmp_path / "automation-preferences.txt").write_text("scope: /\n", "utf-8")
            robots = open_file(
                client,
                (tmp_path / "robots.txt").as_uri(),
                "User-agent: *\nContent-Usage: train-ai=n\n",
            )
            found = await client.text_document_code_action_async(
                lsp.CodeActionParams(robots, part(0, 0, 0), context)
            )
            titles = {each.title for each in found or () if isinstance(each, lsp.CodeAction)}
            # A file of that name exists.
            assert 'Write "No training" as ai.txt of Spawning (ai.txt)' not in titles
            assert 'Write "No training" as TDMRep (tdmrep.json)' in titles
            back = open_file(client, create.uri, xml)
            other = lsp.ExecuteCommandParams("comity.otherForm", [back.uri])
            form: Any = await client.workspace_execute_command_async(other)
            name, text = (
                (form["name"], form["text"]) if isinstance(form, dict) else (form.name, form.text)
            )
            assert name == "ai.txt"
            assert text.split() == AI.split()
            options = lsp.FormattingOptions(tab_size=4, insert_spaces=True)
            edits = await client.text_document_formatting_async(
                lsp.DocumentFormattingParams(document, options)
            )
            assert [(each.range, each.new_text) for each in edits or ()] == [
                (part(2, 0, 2), "    ")
            ]

    run(talk)


@pytest.mark.parametrize(
    ("encodings", "column"),
    [
        ((), 10),
        ((lsp.PositionEncodingKind.Utf8,), 14),
        ((lsp.PositionEncodingKind.Utf8, lsp.PositionEncodingKind.Utf16), 14),
    ],
)
@pytest.mark.slow
def test_what_is_typed_is_looked_at_as_it_is_counted(
    tmp_path: Path, encodings: tuple[lsp.PositionEncodingKind, ...], column: int
) -> None:
    uri = (tmp_path / "robots.txt").as_uri()

    async def talk() -> None:
        async with session(tmp_path, capabilities(*encodings)) as client:
            open_file(client, uri, "# 😀é\u2028x\rUser-agent: *\r\nDisallow: /\n")
            await wait_for_diagnostics(client, uri, lambda found: found == [])
            # Behind the emoji, é and the separator.
            change(client, uri, 2, part(0, column - 4, column - 4), "\nDisallow: ")
            found = await wait_for_diagnostics(client, uri, bool)
            assert found[0].range.start.line == 1
            change(client, uri, 3, None, "User-agent: *\nDisallow: /\n")
            await wait_for_diagnostics(client, uri, lambda found: found == [])
            client.text_document_did_save(
                lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri))
            )
            change(client, uri, 4, part(1, 0, 8), "Dissallow")
            assert {item.code for item in await wait_for_diagnostics(client, uri, bool)} == {
                "robots.misspelled"
            }
            client.text_document_did_close(
                lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri))
            )
            await wait_for_diagnostics(client, uri, lambda found: found == [])

    run(talk)


@pytest.mark.slow
def test_no_text_and_no_question_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ai.txt").write_bytes(b"User-agent: \xff\xfe\n  Path: \x80 html\n")
    (tmp_path / "folder").mkdir()
    texts = {
        "robots.txt": "Disallow: /\x00\ud83d\n" + "A" * 1024 * 1024,
        "a.html": "<meta name='robots' content='",
        "main.rs": "fn main() {}",
        "tdmrep.json": '[{"location": "\\ud800"',
        "rsl.xml": "<rsl" * 1000,
    }
    uris = [(tmp_path / name).as_uri() for name in (*texts, "ai.txt", "folder", "none/robots.txt")]
    uris += [
        "untitled:robots.txt",
        "http://[::1/robots.txt",
        "robots.txt",
        "",
        "file:///\ud800/robots.txt",
    ]

    async def talk() -> None:
        async with session(tmp_path, client_capabilities("visual_studio_code")) as client:
            for name, text in texts.items():
                open_file(client, (tmp_path / name).as_uri(), text, language="x" * 100)
            change(client, "file:///never/opened/robots.txt", 7, part(3, 3, 3), "x")
            change(
                client,
                (tmp_path / "main.rs").as_uri(),
                2,
                lsp.Range(here(2**31 - 1, 5), here(0, 0)),
                "x\ud800",
            )
            for uri in uris:
                document, place = lsp.TextDocumentIdentifier(uri), here(1, 7)
                await client.text_document_diagnostic_async(lsp.DocumentDiagnosticParams(document))
                await client.text_document_completion_async(lsp.CompletionParams(document, place))
                await client.text_document_hover_async(lsp.HoverParams(document, place))
                await client.text_document_definition_async(lsp.DefinitionParams(document, place))
                await client.text_document_rename_async(lsp.RenameParams(document, place, "x"))
                await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
                await client.text_document_folding_range_async(lsp.FoldingRangeParams(document))
                await client.text_document_semantic_tokens_full_async(
                    lsp.SemanticTokensParams(document)
                )
                await client.text_document_inlay_hint_async(lsp.InlayHintParams(document, WHOLE))
                await client.text_document_code_lens_async(lsp.CodeLensParams(document))
                actions = lsp.CodeActionParams(document, WHOLE, lsp.CodeActionContext([]))
                await client.text_document_code_action_async(actions)
                options = lsp.FormattingOptions(tab_size=0, insert_spaces=False)
                await client.text_document_formatting_async(
                    lsp.DocumentFormattingParams(document, options)
                )
            closed = lsp.DidCloseTextDocumentParams(
                lsp.TextDocumentIdentifier("file:///never/opened")
            )
            client.text_document_did_close(closed)
            # The file is not open, and not in UTF-8.
            ai = lsp.TextDocumentIdentifier((tmp_path / "ai.txt").as_uri())
            symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(ai))
            assert len(symbols or ()) == 1

    run(talk)


@pytest.mark.slow
def test_a_large_file_is_looked_at_by_another_process(tmp_path: Path) -> None:
    text = "User-agent: *\n" + "Disallow: /path\n" * 10_000 + "Dissallow: /x\n"
    uri = (tmp_path / "robots.txt").as_uri()

    async def talk() -> None:
        async with session(tmp_path, capabilities()) as client:
            document = open_file(client, uri, text)
            completed = await client.text_document_completion_async(
                lsp.CompletionParams(document, here(10_001, 3))
            )
            assert isinstance(completed, lsp.CompletionList)
            assert "Disallow" in {item.label for item in completed.items}
            found = await wait_for_diagnostics(client, uri, bool)
            assert any(item.range.start.line == 10_001 for item in found)

    run(talk)


async def listening(way: str) -> tuple[asyncio.subprocess.Process, int]:
    """Start a server at a free port."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, way, "0", stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr
    while match := await process.stderr.readline():
        if address := re.search(rb"Serving on \('127\.0\.0\.1', (\d+)\)", match):
            return process, int(address[1])
    raise AssertionError("it does not listen")


async def wait_for_end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    await process.communicate()


@pytest.mark.parametrize("way", ["--tcp", "--websocket"])
@pytest.mark.slow
def test_an_editor_connects(way: str, tmp_path: Path) -> None:
    async def talk() -> None:
        process, port = await listening(way)
        client = make_test_lsp_client()
        await (client.start_tcp if way == "--tcp" else client.start_ws)("127.0.0.1", port)
        await client.initialize_session(lsp.InitializeParams(capabilities=capabilities()))
        document = open_file(
            client, (tmp_path / "robots.txt").as_uri(), "User-agent: *\n" + "# \u00e9\n" * 300_000
        )
        shown = await client.text_document_hover_async(lsp.HoverParams(document, here(0, 3)))
        assert shown
        await client.shutdown_session()
        await client.stop()  # type: ignore[no-untyped-call]
        await wait_for_end(process)

    run(talk)


@pytest.mark.slow
def test_no_web_page_connects_that_is_not_allowed_to() -> None:
    async def talk() -> None:
        process, port = await listening("--websocket")
        with pytest.raises(InvalidStatus):
            await connect(
                f"ws://127.0.0.1:{port}", additional_headers={"Origin": "https://example.com"}
            )
        await wait_for_end(process)

    run(talk)


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:5", ("127.0.0.1", 5)), ("5", ("127.0.0.1", 5)), ("[::1]:5", ("::1", 5))],
)
def test_an_address_is_this_machine_where_none_is_named(
    text: str, address: tuple[str, int]
) -> None:
    parser = ArgumentParser()
    languageserver.add_options(parser)
    assert parser.parse_args(["--tcp", text]).tcp == address


@pytest.mark.parametrize("text", ["x", "127.0.0.1:", "a:70000", "a:-1", "a:٣"])
def test_what_is_no_address_ends_with_what_to_write(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = ArgumentParser()
    languageserver.add_options(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--tcp", text])
    assert "write 127.0.0.1:2087" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["", "example.com", "*", "https://example.com/", "https://a@example.com", "https://"]
)
def test_what_is_no_origin_ends_with_what_to_write(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = ArgumentParser()
    languageserver.add_options(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--websocket", "0", "--allow-origin", text])
    assert "write https://example.com, without a path" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    ["https://example.com", "http://127.0.0.1:8080", "vscode-webview://0a1b", "HTTP://[::1]"],
)
def test_origins_are_those_of_web_pages_and_of_editors_that_are_pages(text: str) -> None:
    parser = ArgumentParser()
    languageserver.add_options(parser)
    assert parser.parse_args(["--websocket", "0", "--allow-origin", text]).allow_origin == [
        text.lower()
    ]


def test_origins_are_for_web_sockets_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["languageserver", "--allow-origin", "https://example.com"]) == 2
    assert "--allow-origin needs --websocket: write both" in capsys.readouterr().err


def test_without_pygls_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    package = "comity.authoring.language_server"
    for name in [name for name in sys.modules if name.startswith((package, "pygls"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygls", None)
    monkeypatch.delattr(sys.modules.get("comity.authoring"), "language_server", raising=False)
    parser = ArgumentParser()
    languageserver.add_options(parser)
    with pytest.raises(
        PolicyError, match=r'^the server needs pygls.*: pip install "comity\[languageserver\]"$'
    ):
        languageserver.run(parser.parse_args([]))
