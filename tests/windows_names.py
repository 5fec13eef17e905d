"""Take away the names that Windows does not have, import all of comity, and run commands.

    python tests/windows_names.py '["lint", "folder"]' ...

Each argument is a command of Scrapy, as JSON. It runs in a process that is forked after the
imports. Packages of others are imported before, as they are made for this system. Stand-ins act like Windows where comity notices: folders cannot be opened,
open files can be neither renamed nor removed, and nothing is renamed over another file."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty")
NAMES: dict[ModuleType, tuple[str, ...]] = {
    os: (
        *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK"),
        *("chown", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid"),
        *("getuid", "killpg", "mkfifo", "pread", "pwrite", "register_at_fork"),
        *("sched_getaffinity", "setsid", "statvfs", "sysconf", "uname"),
    ),
    signal: (
        *("SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP"),
        *("SIGTSTP", "SIGUSR1", "SIGUSR2", "pthread_sigmask"),
    ),
    socket: ("AF_UNIX", "SO_REUSEPORT"),
    sys: (),
}
IN_USE = "[WinError 32] The process cannot access the file because it is being used"


class OnWindows(ModuleType):
    """A module as comity sees it: without some names."""

    def __init__(self, module: ModuleType, barred: tuple[str, ...]) -> None:
        super().__init__(module.__name__)
        self._module, self._barred = module, barred

    def __getattr__(self, name: str) -> Any:
        if name in self._barred:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self._module, name)


def import_comity() -> None:
    import comity

    for module in pkgutil.walk_packages(comity.__path__, "comity."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:  # an extra that is not installed
            if (error.name or "").startswith("comity"):
                raise


def forget_comity() -> None:
    for name in [*sys.modules]:
        if name.partition(".")[0] == "comity":
            del sys.modules[name]


def is_open(path: Any) -> bool:
    """Return True if this process has the file open."""
    try:
        status = Path(path).stat()
    except OSError:
        return False
    for descriptor in Path("/dev/fd").iterdir():
        try:
            if os.path.samestat(os.fstat(int(descriptor.name)), status):
                return True
        except OSError:  # the descriptor of the listing
            pass
    return False


def guarded(function: Callable[..., Any], *, overwrites: bool = True) -> Callable[..., Any]:
    def on_windows(path: Any, *others: Any, **keywords: Any) -> Any:
        if not any(keywords.values()) and is_open(path):
            raise PermissionError(13, IN_USE, str(path))
        if not overwrites and os.path.lexists(others[0]):
            raise FileExistsError(17, "[WinError 183] The file already exists", str(path))
        return function(path, *others, **keywords)

    return on_windows


def import_comity_on_windows() -> None:
    """Import comity again, while the modules that it imports lack the names."""
    import fcntl

    locks = ModuleType("msvcrt")

    def locking(descriptor: int, mode: int, octets: int) -> None:
        assert mode == 2
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, octets, 0, os.SEEK_CUR)

    vars(locks).update(LK_NBLCK=2, locking=locking)
    changed: dict[str, Any] = {
        module.__name__: OnWindows(module, NAMES[module]) for module in NAMES
    }
    changed["sys"].platform = "win32"
    changed |= dict.fromkeys(MODULES)  # None: an import fails
    before = {name: sys.modules[name] for name in changed if name in sys.modules}
    sys.modules.update(changed, msvcrt=locks)
    import_comity()
    sys.modules.update(before)


def act_like_windows() -> None:
    open_file = os.open

    def open_no_folder(path: Any, flags: int, *others: Any, **keywords: Any) -> int:
        if "dir_fd" not in keywords and Path(path).is_dir():
            raise PermissionError(13, "Permission denied", str(path))
        return open_file(path, flags, *others, **keywords)

    os.rename = guarded(os.rename, overwrites=False)
    os.replace = guarded(os.replace)
    os.unlink = os.remove = guarded(os.unlink)
    os.open = open_no_folder


def main(commands: list[list[str]]) -> None:
    warnings.filterwarnings("ignore", category=EncodingWarning)
    import_comity()
    forget_comity()
    act_like_windows()
    # With -X warn_default_encoding, Python warns where Windows would use another encoding.
    warnings.filterwarnings("error", category=EncodingWarning, module=r"comity\b")
    import_comity_on_windows()
    from scrapy.cmdline import execute

    for words in commands:
        sys.stdout.flush()
        process = os.fork()  # a process runs one crawl
        if not process:
            execute(["scrapy", *words])
            raise SystemExit
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if status:
            raise SystemExit(f"{words}: {status}")


if __name__ == "__main__":
    main([json.loads(words) for words in sys.argv[1:]])
