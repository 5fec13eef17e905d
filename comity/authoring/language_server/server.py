"""The protocol between editors and the server (LSP 3.17).

Requests never end in an error. If a feature fails, for example on incomplete text, its answer is
empty."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from threading import Event
from typing import Any, Concatenate, NamedTuple, cast

from lsprotocol import types as lsp
from pygls.io_ import run_websocket
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import Workspace
from websockets.asyncio.server import ServerConnection, serve
from websockets.typing import Origin

from comity import __version__
from comity.authoring.language_server import tasks
from comity.authoring.language_server.documents import MAX_TEXT, Buffer, without_surrogates
from comity.authoring.language_server.features import actions, tokens
from comity.authoring.language_server.tasks import Snapshot, outline_of
from comity.authoring.language_server.work import Arguments, Result, Workers
from comity.authoring.lint import LintKind, site_folder
from comity.authoring.problems import Problem
from comity.authoring.stated_wishes import PATHS

NAME = "comity"
OTHER_FORM = "comity.otherForm"
QUIET = 0.2  # seconds without a key before a file is checked
MAX_MESSAGE = 64 * 1024 * 1024  # the maximum octets of a message by WebSocket
_TRIGGERS = [":", " ", "/", "=", "<", '"', ",", "(", "-", ".", "#"]

log = logging.getLogger(__name__)


class Files(Workspace):
    """The texts that are open in editors, and the files on the disk."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.buffers: dict[str, Buffer] = {}

    @property
    def encoding(self) -> str:
        return str(getattr(self.position_encoding, "value", self.position_encoding))

    def put_text_document(
        self, text_document: lsp.TextDocumentItem, notebook_uri: str | None = None
    ) -> None:
        self.buffers[text_document.uri] = Buffer(text_document.text, text_document.version)

    def remove_text_document(self, doc_uri: str) -> None:
        self.buffers.pop(doc_uri, None)

    def update_text_document(
        self,
        text_doc: lsp.VersionedTextDocumentIdentifier,
        change: lsp.TextDocumentContentChangeEvent,
    ) -> None:
        """Edit an open text. Changes of other texts are ignored."""
        buffer = self.buffers.get(text_doc.uri)
        if buffer is not None:
            buffer.replace(getattr(change, "range", None), change.text, self.encoding)
            buffer.version = text_doc.version

    def text(self, uri: str) -> str | None:
        """Return the text of a file.

        None means that it does not exist, cannot be read or is too large."""
        if uri in self.buffers:
            return self.buffers[uri].text
        path = to_fs_path(uri)
        try:
            if path is None or not Path(path).is_file() or Path(path).stat().st_size > MAX_TEXT:
                return None
            return without_surrogates(Path(path).read_bytes().decode("utf-8", "replace"))
        except (OSError, ValueError):
            return None

    def texts(self, folder: str, paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return the existing files of a site: their paths on the site, and their texts."""
        texts = ((path, self.text(Path(folder).as_uri() + path)) for path in paths)
        return tuple((path, text) for path, text in texts if text is not None)

    def version(self, uri: str) -> int | None:
        return self.buffers[uri].version if uri in self.buffers else None

    def site_folder(self, uri: str, kind: LintKind | None) -> Path | None:
        """Return the folder of the site that a file belongs to. None means that it is not known.

        A policy file in the right place gives the folder: `/srv/site/robots.txt` is in the site
        `/srv/site`. For other files, it is the innermost folder around the file that is open in the
        editor, or else the folder of the file."""
        path = to_fs_path(uri) if uri.startswith("file:") else None
        if path is None:
            return None
        file = Path(path)
        if kind and kind.path and file.as_posix().endswith(kind.path):
            return site_folder(file, kind)
        opened = [
            Path(name)
            for folder in self.folders.values()
            if (name := to_fs_path(folder.uri)) is not None
        ]
        around = (folder for folder in opened if folder in file.parents)
        folder = max(around, key=lambda folder: len(folder.parts), default=file.parent)
        return None if folder in (Path(folder.anchor), Path.home()) else folder


class Inspection(NamedTuple):
    """The problems of a file in one version.

    Attributes:
        version: The version of the editor. None: the file is not open in an editor.
        snapshot: The text that was checked.
        problems: The problems in it.
    """

    version: int | None
    snapshot: Snapshot
    problems: list[Problem]


class EditorServer(LanguageServer):
    """A language server for one editor."""

    def __init__(self) -> None:
        super().__init__(NAME, __version__)
        self.workers = Workers()
        self.inspections: dict[str, Inspection] = {}
        self._checks: dict[str, asyncio.Task[None]] = {}  # by the URI of the file
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def files(self) -> Files:
        return cast(Files, self.workspace)

    def open_files(self) -> None:
        """Replace the workspace of pygls, which ends lines at more characters than LSP does."""
        of_pygls = self.protocol.workspace
        folders = list(of_pygls.folders.values())
        self.protocol._workspace = Files(
            of_pygls.root_uri,
            workspace_folders=folders,
            position_encoding=of_pygls.position_encoding,
        )
        if not folders and of_pygls.root_uri:
            self.files.add_folder(lsp.WorkspaceFolder(of_pygls.root_uri, "root"))

    def snapshot(self, uri: str) -> Snapshot | None:
        """Return the current snapshot of a file.

        None means that it is no policy file, or cannot be read."""
        text = self.files.text(uri)
        if text is None or len(text) > MAX_TEXT:
            return None
        bare = Snapshot(uri, text, self.files.encoding)
        kind = outline_of(bare).document.kind
        if kind is None:
            return None
        folder = self.files.site_folder(uri, kind)
        return bare._replace(folder=str(folder)) if folder else bare

    async def ask(
        self,
        task: Callable[Concatenate[Snapshot, Arguments], Result],
        uri: str,
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result | None:
        """Return the result of a task about a file.

        None means that it is no policy file, or cannot be read."""
        snapshot = self.snapshot(uri)
        return await self.workers.ask(task, snapshot, *arguments, **options) if snapshot else None

    # Diagnostics

    @property
    def pulls(self) -> bool:
        """True if the editor requests diagnostics itself (pull diagnostics)."""
        documents = self.client_capabilities.text_document
        return documents is not None and documents.diagnostic is not None

    def begin(self, work: Awaitable[Any]) -> None:
        """Run work in the background, and log its failure."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a task ended with %r", error)

    def look_later(self, uri: str, *, quiet: float = QUIET, in_folder: bool = False) -> None:
        """Check a file after `quiet` seconds without a key.

        `in_folder`: True checks the file a second time, together with the other files of its site.
        """
        if task := self._checks.get(uri):
            task.cancel()
        task = self._checks[uri] = asyncio.ensure_future(
            self._look_after(uri, quiet, in_folder=in_folder)
        )
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    async def _look_after(self, uri: str, quiet: float, *, in_folder: bool) -> None:
        await asyncio.sleep(quiet)
        await self.look(uri)
        if in_folder:
            await self.look(uri, in_folder=True)

    async def look(self, uri: str, *, in_folder: bool = False) -> Inspection | None:
        """Check the current text of a file. None means that it is no policy file.

        A text that has been checked already is not checked again, unless together with the other
        files of its site."""
        version, snapshot = self.files.version(uri), self.snapshot(uri)
        previous = self.inspections.get(uri)
        if snapshot is None:
            if previous and not self.pulls:
                self._publish(uri, version, [])
            self.inspections.pop(uri, None)
            return None
        if previous and previous.snapshot == snapshot and not in_folder:
            return previous
        find = tasks.find_problems_in_folder if in_folder else tasks.find_problems
        problems = await self.workers.ask(find, snapshot)
        inspection = Inspection(version, snapshot, problems)
        if uri in self.files.buffers and self.files.version(uri) == version:
            self.inspections[uri] = inspection
            if not self.pulls:
                self._publish(
                    uri, version, await self.workers.ask(tasks.diagnostics_of, snapshot, problems)
                )
            elif in_folder:
                self._refresh(lsp.WORKSPACE_DIAGNOSTIC_REFRESH)
        return inspection

    def _publish(self, uri: str, version: int | None, diagnostics: list[lsp.Diagnostic]) -> None:
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, diagnostics, version)
        )

    def _refresh(self, method: str) -> None:
        workspace = self.client_capabilities.workspace
        if workspace and workspace.diagnostics and workspace.diagnostics.refresh_support:
            self.workspace_diagnostic_refresh(None)

    async def problems(self, uri: str) -> list[Problem]:
        inspection = await self.look(uri)
        return inspection.problems if inspection else []

    def known_problems(self, uri: str) -> list[Problem]:
        """Return the problems of the current text, or [] if it has not been checked yet."""
        inspection = self.inspections.get(uri)
        return (
            inspection.problems
            if inspection and inspection.version == self.files.version(uri)
            else []
        )

    def forget(self, uri: str) -> None:
        """Drop the checks and problems of a file."""
        if task := self._checks.pop(uri, None):
            task.cancel()
        self.inspections.pop(uri, None)
        if not self.pulls:
            self._publish(uri, None, [])

    def shutdown(self) -> None:
        self.workers.close()
        super().shutdown()  # type: ignore[no-untyped-call]

    def start_ws(self, host: str, port: int, origins: Sequence[str] = ()) -> None:
        """Serve one editor by WebSocket.

        `origins`: the origins of web pages that may connect. Programs other than browsers send no
        origin, and may always connect."""
        self._stop_event = stop_event = Event()
        allowed = [None, *map(Origin, origins)]

        async def run_connection(websocket: ServerConnection) -> None:
            await run_websocket(
                stop_event=stop_event, websocket=websocket, protocol=self.protocol, logger=log
            )
            self.shutdown()

        async def listen() -> None:
            async with serve(
                run_connection, host, port, origins=allowed, max_size=MAX_MESSAGE
            ) as listening:
                self._server = listening
                for listener in listening.sockets:
                    log.info("Serving on %s", listener.getsockname())
                await listening.wait_closed()

        asyncio.run(listen())

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log an error. The editor does not see it."""
        log.error("%s: %r", getattr(source, "__name__", source), error)


def create() -> EditorServer:
    """Return a server with all features."""
    server = EditorServer()
    _add_documents(server)
    _add_diagnostics(server)
    _add_help_at_positions(server)
    _add_views(server)
    _add_changes(server)
    return server


Register = Callable[[Callable[[Any], Any]], None]


def _feature(
    server: EditorServer, method: str, options: Any = None, *, otherwise: Any = None
) -> Register:
    """Register a handler. If it fails, the error is logged and `otherwise` is the answer."""

    def register(handler: Callable[[Any], Any]) -> None:
        async def answer(params: Any) -> Any:
            try:
                result = handler(params)
                return await result if asyncio.iscoroutine(result) else result
            except Exception:
                log.exception("%s has no answer", method)
                return otherwise

        server.feature(method, options)(answer)

    return register


def _add_documents(server: EditorServer) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        server.open_files()

    # These are no coroutines: they have to end before the next message is read.
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        server.look_later(params.text_document.uri, quiet=0, in_folder=True)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        if not server.pulls:
            server.look_later(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        for uri in server.files.buffers:
            server.look_later(uri, quiet=0, in_folder=True)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def did_change_configuration(params: lsp.DidChangeConfigurationParams) -> None:
        """Accept the message. The server has no configuration."""

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: lsp.DidChangeWatchedFilesParams) -> None:
        """Accept the message. Folders are read anew when they are needed."""


def _add_diagnostics(server: EditorServer) -> None:
    no_report = lsp.RelatedFullDocumentDiagnosticReport(items=[])

    @_feature(
        server,
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(
            inter_file_dependencies=True, workspace_diagnostics=False, identifier=NAME
        ),
        otherwise=no_report,
    )
    async def diagnostic(params: lsp.DocumentDiagnosticParams) -> Any:
        uri = params.text_document.uri
        version = server.files.version(uri)
        snapshot = server.snapshot(uri)
        if snapshot is not None and len(snapshot.text) > MAX_AT_ONCE:
            await asyncio.sleep(QUIET)
            if server.files.version(uri) != version:  # the next request is on its way
                previous = server.inspections.get(uri)
                items = (
                    await server.workers.ask(
                        tasks.diagnostics_of, previous.snapshot, previous.problems
                    )
                    if previous
                    else []
                )
                return lsp.RelatedFullDocumentDiagnosticReport(items=items)
        inspection = await server.look(uri)
        items = (
            await server.workers.ask(tasks.diagnostics_of, inspection.snapshot, inspection.problems)
            if inspection
            else []
        )
        return lsp.RelatedFullDocumentDiagnosticReport(items=items)


def _add_help_at_positions(server: EditorServer) -> None:
    @_feature(
        server,
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=_TRIGGERS),
        otherwise=lsp.CompletionList(is_incomplete=False, items=[]),
    )
    async def complete(params: lsp.CompletionParams) -> Any:
        documents = server.client_capabilities.text_document
        item = documents.completion.completion_item if documents and documents.completion else None
        has_snippets = bool(item and item.snippet_support)
        completions = await server.ask(
            tasks.complete_at,
            params.text_document.uri,
            params.position,
            has_snippets=has_snippets,
        )
        return completions or lsp.CompletionList(is_incomplete=False, items=[])

    @_feature(server, lsp.TEXT_DOCUMENT_HOVER)
    async def hover(params: lsp.HoverParams) -> Any:
        uri = params.text_document.uri
        line = params.position.line + 1
        problems = [
            problem
            for problem in server.known_problems(uri)
            if problem.span and problem.span.line == line
        ]
        return await server.ask(tasks.hover_at, uri, params.position, problems)

    @_feature(server, lsp.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: lsp.DefinitionParams) -> Any:
        return await server.ask(
            tasks.locations_at, params.text_document.uri, params.position, definitions_only=True
        )

    @_feature(server, lsp.TEXT_DOCUMENT_REFERENCES)
    async def references(params: lsp.ReferenceParams) -> Any:
        return await server.ask(
            tasks.locations_at,
            params.text_document.uri,
            params.position,
            definitions_only=False,
            with_definitions=params.context.include_declaration,
        )


def _add_views(server: EditorServer) -> None:
    @_feature(server, lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: lsp.DocumentSymbolParams) -> Any:
        return await server.ask(tasks.symbols_of, params.text_document.uri)

    @_feature(server, lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folding(params: lsp.FoldingRangeParams) -> Any:
        return await server.ask(tasks.folding_of, params.text_document.uri)

    @_feature(
        server,
        lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
        tokens.LEGEND,
        otherwise=lsp.SemanticTokens([]),
    )
    async def all_tokens(params: lsp.SemanticTokensParams) -> Any:
        snapshot = server.snapshot(params.text_document.uri)
        # Of large files, editors request the tokens of visible lines
        # (TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE).
        if snapshot is None or len(snapshot.text) > MAX_AT_ONCE:
            return lsp.SemanticTokens([])
        return await server.workers.ask(tasks.tokens_of, snapshot)

    @_feature(
        server,
        lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE,
        tokens.LEGEND,
        otherwise=lsp.SemanticTokens([]),
    )
    async def tokens_of_lines(params: lsp.SemanticTokensRangeParams) -> Any:
        first, last = (
            params.range.start.line,
            min(params.range.end.line, params.range.start.line + MAX_LINES),
        )
        return await server.ask(
            tasks.tokens_of, params.text_document.uri, first, last
        ) or lsp.SemanticTokens([])

    @_feature(server, lsp.TEXT_DOCUMENT_INLAY_HINT)
    async def hints(params: lsp.InlayHintParams) -> Any:
        uri = params.text_document.uri
        first, last = (
            params.range.start.line,
            min(params.range.end.line, params.range.start.line + MAX_LINES),
        )
        return await server.ask(tasks.hints_of, uri, server.known_problems(uri), first, last)

    @_feature(server, lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions(resolve_provider=False))
    async def lenses(params: lsp.CodeLensParams) -> Any:
        return await server.ask(tasks.lenses_of, params.text_document.uri)


# The maximum characters of a file that gets all tokens in one answer, and diagnostics without a
# wait of QUIET.
MAX_AT_ONCE = 128 * 1024
MAX_LINES = 2000  # the maximum number of lines in one answer


def _add_changes(server: EditorServer) -> None:
    kinds = [lsp.CodeActionKind.QuickFix, actions.FIX_ALL, actions.OTHER_FORM, actions.OTHER_FORMAT]

    @_feature(
        server,
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(code_action_kinds=kinds),
        otherwise=[],
    )
    async def code_actions(params: lsp.CodeActionParams) -> Any:
        uri, requested = params.text_document.uri, params.context.only
        only = (
            tuple(str(getattr(kind, "value", kind)) for kind in requested)
            if requested is not None
            else None
        )
        inspection = await server.look(uri)
        if inspection is None:
            return []
        offers = await server.workers.ask(
            tasks.fixes_of, inspection.snapshot, inspection.problems, params.range, only
        )
        if _creates_files(server):
            offers += await server.workers.ask(tasks.conversion_of, inspection.snapshot, only)
            if folder := inspection.snapshot.folder:
                offers += await server.workers.ask(
                    tasks.other_formats_of,
                    inspection.snapshot,
                    server.files.texts(folder, PATHS),
                    only,
                )
        return offers

    @_feature(server, lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    async def rename(params: lsp.RenameParams) -> Any:
        return await server.ask(
            tasks.rename_at, params.text_document.uri, params.position, params.new_name
        )

    @_feature(server, lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare_rename(params: lsp.PrepareRenameParams) -> Any:
        return await server.ask(tasks.name_range_at, params.text_document.uri, params.position)

    @_feature(server, lsp.TEXT_DOCUMENT_FORMATTING)
    async def formatting(params: lsp.DocumentFormattingParams) -> Any:
        options = params.options
        return await server.ask(
            tasks.format_text,
            params.text_document.uri,
            tab_size=options.tab_size,
            spaces=options.insert_spaces,
        )

    @server.command(OTHER_FORM)
    async def other_form(uri: str) -> dict[str, str] | None:
        """Return the other form of an ai.txt: its text and name.

        For editors that cannot create files."""
        form = await server.ask(tasks.other_form_of, str(uri))
        return {"text": form[0], "name": form[1]} if form else None


def _creates_files(server: EditorServer) -> bool:
    workspace = server.client_capabilities.workspace
    edit = workspace.workspace_edit if workspace else None
    can = edit.resource_operations if edit else None
    return bool(edit and edit.document_changes and can and lsp.ResourceOperationKind.Create in can)


def serve_stdio() -> None:
    """Serve the editor that has started this process.

    Standard output belongs to the protocol, so all other output goes to standard error."""
    sys.stdout.flush()
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    create().start_io(sys.stdin.buffer, output)


def show_address() -> None:
    """Log the address of the server on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    for name in ("pygls.server", __name__):
        logging.getLogger(name).setLevel(logging.INFO)
        logging.getLogger(name).addHandler(handler)
