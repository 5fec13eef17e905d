"""The detection of dead workers of a crawl on this machine.

Each worker locks a file of its own as long as its process lives. Who gets that lock knows that the process is gone, however it
ended, and that nothing of it goes out any more: so nobody has to wait until its time is over. A process that only stands still,
or that the server does not hear of, keeps its lock.

Nothing is known of workers on other machines, with another folder for temporary files or of another user, nor where the system
has no such locks. There the signs of life count alone."""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO

from comity.cluster.address import StateAddress
from comity.policies.syntax.printable import printable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


class Neighbours:
    """The workers of a crawl that lock files in the same folder as this one."""

    def __init__(self, address: StateAddress, worker: str, folder: Path | None = None) -> None:
        """`folder`: of nobody else; it is made where it is not there."""
        if folder is None and hasattr(os, "getuid"):
            folder = Path(tempfile.gettempdir()) / f"comity-workers-{os.getuid()}"
        self._folder = folder
        self._worker = worker
        crawl = f"{address} {address.crawl}"
        self._prefix = f"{blake2b(crawl.encode(), digest_size=8).hexdigest()}-"
        self._file: IO[bytes] | None = None
        self._path = Path()

    def appear(self) -> None:
        """Let others know from now on when this process is dead."""
        if fcntl is None or self._folder is None or self._file is not None:
            return
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            of_folder = self._folder.lstat()
            if (
                not stat.S_ISDIR(of_folder.st_mode)
                or of_folder.st_uid != os.getuid()
                or of_folder.st_mode & 0o077
            ):
                raise PermissionError(f"{self._folder} is not of this user alone")
            self._path = self._folder / f"{self._prefix}{self._worker.rpartition(':')[2]}"
            self._file = _locked(self._path, self._worker)
        except OSError as error:
            logger.info(
                "COMITY_STATE: if this worker is killed, others notice it by COMITY_WORKER_TIMEOUT alone: %(error)s",
                {"error": printable(str(error))},
            )

    def vanish(self) -> None:
        """This worker has left the crawl, and sends nothing any more."""
        if self._file is not None:
            with suppress(OSError):
                self._path.unlink()
            self._file.close()
            self._file = None

    @contextmanager
    def dead(self) -> Iterator[list[str]]:
        """The names of workers whose processes are gone. They are forgotten when the context ends without an error."""
        locked: list[tuple[Path, IO[bytes]]] = []
        try:
            yield [name for path in self._others() if (name := _try_lock(path, locked)) is not None]
            for path, _ in locked:
                with suppress(OSError):
                    path.unlink()
        finally:
            for _, file in locked:
                file.close()

    def _others(self) -> list[Path]:
        if self._file is None or self._folder is None:
            return []
        try:
            names = [name for name in os.listdir(self._folder) if name.startswith(self._prefix)]  # noqa: PTH208  # each moment
        except OSError:
            return []
        return [self._folder / name for name in names if name != self._path.name]


def _locked(path: Path, text: str) -> IO[bytes]:
    """A new file, which is locked whenever others see it."""
    new = path.with_name(f".{path.name}")
    file = new.open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.write(text.encode())
        file.flush()
        new.rename(path)
    except BaseException:
        file.close()
        raise
    return file


def _try_lock(path: Path, locked: list[tuple[Path, IO[bytes]]]) -> str | None:
    """The name of the worker, where its file is not locked: it is by now, and among the locked ones."""
    try:
        file = path.open("rb")
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(
            path.stat(), os.fstat(file.fileno())
        ):  # else it has left, or another one was faster
            locked.append((path, file))
            return file.read().decode()
    except (OSError, ValueError):
        pass
    file.close()
    return None
