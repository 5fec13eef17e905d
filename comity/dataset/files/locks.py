"""Locks of open files. A lock ends when its file is closed, at the latest with its process.

lock(descriptor)    lock an open file, or raise BlockingIOError"""

from __future__ import annotations

import errno
import os

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Windows locks octets, and other processes can then not read them. So the octet is behind the end
# of most files. Its number has 31 bits, because the C library may take no more.
_OCTET = (1 << 31) - 1


def lock(descriptor: int) -> None:
    """Lock an open file for this process.

    BlockingIOError: another process has locked the file. OSError: the file system has no locks."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        _lock_on_windows(descriptor)


def _lock_on_windows(descriptor: int) -> None:
    import msvcrt

    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, _OCTET, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    except PermissionError as error:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
    finally:
        os.lseek(descriptor, position, os.SEEK_SET)
