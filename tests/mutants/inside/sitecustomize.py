"""On the path of the processes that tests start while they are tried on a mistake: these make the same mistake."""

import os
from importlib.machinery import SourceFileLoader
from types import CodeType

_NAME, _, _FILE = os.environ.get("MUTANT_UNDER_TEST", "").partition("=")
_get_code = SourceFileLoader.get_code


def _code_with_fault(self: SourceFileLoader, fullname: str) -> CodeType | None:
    if fullname != _NAME:
        return _get_code(self, fullname)
    with open(_FILE, encoding="utf-8") as file:  # noqa: PTH123  # every process pays for what is imported here
        return compile(file.read(), self.path, "exec")


if _NAME:
    SourceFileLoader.get_code = _code_with_fault  # type: ignore[assignment, method-assign]
