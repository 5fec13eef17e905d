"""The detection of dead workers of a crawl on this machine.

Each worker locks a file of its own as long as its process lives. A process that gets this lock
knows that the worker's process is gone, for any reason, and sends nothing any more. So other
workers need not wait for the end of its leases. A process that is only stopped, or cut off from the
server, keeps its lock.

Some dead workers are not detected: those on other machines, with another folder for temporary files
or of another user, and on systems without such locks. There only the signs of life count."""

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

from comity.policies.syntax.printable import printable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


class Neighbours:
    """The workers of a crawl that lock files in the same folder as this one."""

    def __init__(self, crawl: str, worker: str, folder: Path | None = None) -> None:
        """`crawl`: a text that names the server and the crawl. `worker`: its unique name.

        `folder`: a folder for these files only, made if it does not exist; None: the default."""
        if folder is None and hasattr(os, "getuid"):
            folder = Path(tempfile.gettempdir()) / f"comity-workers-{os.getuid()}"
        self._folder = folder
        self._worker = worker
        self._prefix = f"{blake2b(crawl.encode(), digest_size=8).hexdigest()}-"
        self._file: IO[bytes] | None = None
        self._path = Path()

    def appear(self) -> None:
        """From now on let others know when this process is dead."""
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
                raise PermissionError(f"{self._folder} is not a private folder of this user")
            self._path = self._folder / f"{self._prefix}{self._worker.rpartition(':')[2]}"
            self._file = _create_locked(self._path, self._worker)
        except OSError as error:
            logger.info(
                "COMITY_STATE: if this worker is killed, others notice it only after"
                " COMITY_WORKER_TIMEOUT: %(error)s",
                {"error": printable(str(error))},
            )

    def vanish(self) -> None:
        """Leave the crawl. The worker sends nothing any more."""
        if self._file is not None:
            with suppress(OSError):
                self._path.unlink()
            self._file.close()
            self._file = None

    @contextmanager
    def dead(self) -> Iterator[list[str]]:
        """Yield the names of dead workers. They are forgotten unless the context fails."""
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
            # os.listdir() is faster than Path.iterdir(), and this runs often.
            names = [name for name in os.listdir(self._folder) if name.startswith(self._prefix)]  # noqa: PTH208
        except OSError:
            return []
        return [self._folder / name for name in names if name != self._path.name]


def _create_locked(path: Path, text: str) -> IO[bytes]:
    """Create a file that is locked as soon as others see it."""
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
    """Lock the file of a worker, and return its name. None if the worker lives.

    The locked file is added to `locked`."""
    try:
        file = path.open("rb")
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Else the worker has left, or another process was faster.
        if os.path.samestat(path.stat(), os.fstat(file.fileno())):
            locked.append((path, file))
            return file.read().decode()
    except (OSError, ValueError):
        pass
    file.close()
    return None
