"""Files on the disk that are replaced as a whole, or not at all.

Replacement(path)       a new file that replaces the file at `path` in one step
open_beside(path)       open a file beside a dataset, under a name that the operator did not choose
sync(folder)            make new names in a folder survive a crash of the machine"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, cast

from comity.dataset.files.locks import lock
from comity.dataset.files.places import is_local
from comity.dataset.records import DatasetError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of a write to a full disk
# Windows can neither rename nor remove an open file, and opens no folders.
IS_WINDOWS = sys.platform == "win32"
# Each system has some of these flags. Windows would change line ends without O_BINARY.
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


def open_beside(path: Path) -> IO[bytes]:
    """Open a file beside a dataset to read and write it. Create it if it does not exist.

    The operator did not choose the name of the file. So the file must not be a symbolic link, or
    have a second name (a hard link). In a folder where other users may write, one of them could
    have created the link to destroy another file.

    DatasetError: the file is a link, or not a plain file. OSError: it cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _foreign(path) from None
        raise
    status = os.fstat(descriptor)
    # Only a system without O_NOFOLLOW can have opened the target of a symbolic link.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or path.is_symlink():
        os.close(descriptor)
        raise _foreign(path)
    return os.fdopen(descriptor, "r+b")


def _foreign(path: Path) -> DatasetError:
    return DatasetError(f"{path} is a link, or no plain file: remove it, if it is not needed")


class Replacement:
    """A new file that replaces the file at `path` in one step.

        with Replacement(path) as file:
            file.write(...)         # a crash or an error changes nothing

    Other programs see the old file or the new one, each complete. The new file is written beside
    the old one, under the name `.NAME.part`. A file that a killed process left there is
    overwritten. In an object store, the new file appears when it is complete."""

    def __init__(self, path: Path, *, is_named: bool = True) -> None:
        """`is_named`: True if the operator chose the name. If `path` is a link then, its target is
        replaced. False: the link itself is replaced, because another user may have created it."""
        self.path = Path(os.path.realpath(path)) if is_named and is_local(path) else path
        self.part = self.path.with_name(f".{self.path.name}.part")

    def __enter__(self) -> IO[bytes]:
        """Open the new file.

        DatasetError: it cannot be written, or another process is writing it."""
        if not is_local(self.path):
            self._upload: Any = self._do_upload(
                lambda: cast(Any, self.path).open("wb", autocommit=False)
            )
            return cast(IO[bytes], self._upload)
        if self.path.is_dir():
            raise DatasetError(f"{self.path} cannot be written: Is a directory")
        try:
            self._file = self._open_part()
        except BlockingIOError:
            raise DatasetError(f"{self.path} is being written by another process") from None
        except OSError as error:
            raise self._unwritable(error) from None
        return self._file

    def _open_part(self) -> IO[bytes]:
        while True:
            file = open_beside(self.part)
            try:
                lock(file.fileno())
                # The last holder of the lock may have renamed the file in the meantime. Then it
                # must not be written.
                if self.part.exists() and os.path.samestat(
                    self.part.stat(), os.fstat(file.fileno())
                ):
                    file.truncate()
                    if self.path.exists() and not IS_WINDOWS:
                        os.fchmod(file.fileno(), self.path.stat().st_mode & 0o7777)
                    return file
            except BaseException:
                file.close()
                raise
            file.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Replace the old file, unless the block raised.

        DatasetError: the file cannot be written, e.g. because the disk is full."""
        if not is_local(self.path):
            if error is not None:
                with suppress(Exception):
                    self._upload.discard()
                    self._upload.closed = True
                return
            self._do_upload(self._upload.close)
            self._do_upload(self._upload.commit)
            return
        # Closing it releases the lock, and may try once more to write the rest.
        with (
            suppress(OSError),
            self._file as file,
        ):
            if error is None:
                try:
                    file.flush()
                    os.fsync(file.fileno())
                    if IS_WINDOWS:
                        file.close()
                    self.part.replace(self.path)
                except OSError as failed:
                    error = failed
            if error is not None:
                if IS_WINDOWS:
                    file.close()
                self.part.unlink(missing_ok=True)
        if isinstance(error, OSError) and (kind is None or error.errno in NO_ROOM):
            raise self._unwritable(error) from None
        if error is None:
            sync(self.path.parent)

    def _do_upload(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except Exception as error:
            raise DatasetError(f"{self.path} cannot be written: {error}") from None

    def _unwritable(self, error: OSError) -> DatasetError:
        return DatasetError(f"{self.path} cannot be written: {error.strerror}")


def sync(folder: Path) -> None:
    """Make new and changed names in a folder survive a crash.

    In an object store and on Windows, do nothing: there is no call for it."""
    if IS_WINDOWS or not is_local(folder):
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
