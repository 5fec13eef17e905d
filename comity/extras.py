"""The extras: packages that single features need, and the messages if they are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


def install(extra: str) -> str:
    """Return the command that installs an extra.

    The double quotes are for zsh, which would expand the brackets. cmd.exe has no single quotes."""
    return f'pip install "comity[{extra}]"'


def needs(subject: str, packages: str, extra: str) -> str:
    """Return the message that the subject needs packages which are not installed."""
    return f"{subject} needs {packages}: {install(extra)}"


def is_missing(package: str) -> bool:
    """Return True if a package is not installed. It is not imported."""
    return find_spec(package) is None


@contextmanager
def required(subject: str, extra: str, kind: type[Exception] = ImportError) -> Iterator[None]:
    """If an import in the block fails, raise an error with the command that installs the extra.

        with required("comity.client.httpx", "httpx"):
            import httpx

    `kind`: the class of the error. Errors in imports of comity's own modules are not changed."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "comity").partition(".")[0]
        if package == "comity":
            raise
        raise kind(needs(subject, package, extra)) from None
