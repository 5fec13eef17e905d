"""The Clean-param lines of a robots.txt, as Yandex documents them.

    CleanParams(lines, file).clean("/forum/a.php?s=1&t=2")    "/forum/a.php?t=2"

A line names parameters, separated by `&`, and then the begin of the paths that it applies to, in
which `*` matches any octets. Without a path it applies to all paths. All lines of the file apply
together, inside and outside of groups: Yandex calls the directive intersectional.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from comity.policies.answers.decision import Finding
from comity.policies.formats.robots.extension_lines import ExtensionLine
from comity.policies.formats.robots.file import RobotsFile
from comity.policies.formats.robots.line_site import column_and_length
from comity.policies.syntax.lines import Findings
from comity.policies.syntax.path_patterns import PatternIndex, normal_pattern, normal_target

NAME = "clean-param"
MAX_RULE = 500  # the maximum octets of a rule
_PATH = re.compile(rb"[/*][A-Za-z0-9.\-/*_]*+")
_SPACES = re.compile(rb"[ \t]+")


class CleanParams:
    """The rules of one robots.txt. Invalid rules have no effect.

    Attributes:
        findings: Findings for the author.
    """

    def __init__(self, lines: Iterable[ExtensionLine], file: RobotsFile) -> None:
        self._file = file
        findings = Findings(file.url)
        # Name -> the numbers of the patterns that the name is taken off for.
        self._numbers: dict[bytes, set[int]] = {}
        numbers: dict[str, int] = {}  # pattern -> its number
        for line in lines:
            names, path = self._read(line, findings)
            number = numbers.setdefault(normal_pattern(path), len(numbers))
            for name in names:
                self._numbers.setdefault(name, set()).add(number)
        self._index = PatternIndex(list(numbers))
        self.findings: tuple[Finding, ...] = tuple(findings)

    def clean(self, target: str) -> str:
        """Return path and query without the parameters that make no other page.

        The other parameters keep their order and their octets. If no parameter is left, the `?`
        goes too. The path alone decides which rules apply, so a second call changes nothing.
        """
        path, mark, query = target.partition("?")
        if not mark or not self._numbers:
            return target
        parameters = query.split("&")
        named: dict[str, frozenset[int] | set[int]] = {}
        for parameter in parameters:
            name = _name(parameter)
            if name and name not in named and (numbers := self._numbers.get(_octets(name))):
                named[name] = numbers
        if not named:
            return target
        applying = frozenset(self._index.all(normal_target(path)))
        dropped = {name for name, numbers in named.items() if not numbers.isdisjoint(applying)}
        kept = "&".join(parameter for parameter in parameters if _name(parameter) not in dropped)
        return f"{path}?{kept}" if kept else path if dropped else target

    def _read(self, line: ExtensionLine, findings: Findings) -> tuple[list[bytes], bytes]:
        """Return the names of a rule, decoded, and its path. No names: it has no effect."""
        words = _SPACES.split(line.value)
        path = words[1] if len(words) == 2 else b"/"
        problem: tuple[str, str] | None = None
        quoted: list[bytes] = []
        if len(line.value) > MAX_RULE:
            problem = (
                "clean-param.length",
                f"The rule has more than {MAX_RULE} octets, so it has no effect. Write several.",
            )
        elif not words[0].strip(b"&"):
            problem = "clean-param.names", "The rule names no parameter, so it has no effect."
        elif len(words) > 2 or not _PATH.fullmatch(path):
            if any(word.startswith((b"/", b"*")) for word in words):
                quoted = [line.value]
                advice = (
                    "Begin the path with `/` or `*`, and write only letters, digits and `.-/*_` "
                    "in it."
                )
            else:
                quoted = [line.value, _joined(words)]
                advice = "Write `{}`."
            problem = (
                "clean-param.path",
                f"`{{}}` is not `NAMES PATH`, so it has no effect. {advice}",
            )
        if problem is None:
            return [unquote_to_bytes(name) for name in words[0].split(b"&") if name], path
        rule, message = problem
        robots = self._file.robots
        column, length = (
            column_and_length(line, line.value, robots) if quoted and robots else (0, 0)
        )
        findings.report(rule, message, *quoted, line=line.line, column=column, length=length)
        return [], b"/"


def _name(parameter: str) -> str:
    """Return the name of a parameter; "" if it may be several: some sites separate them by `;`."""
    return "" if ";" in parameter else parameter.partition("=")[0]


def _octets(name: str) -> bytes:
    """Return the octets of a name in a URL: `a%5B%5D` and `a[]` are one name."""
    return unquote_to_bytes(name) if "%" in name else name.encode("utf-8", "surrogatepass")


def _joined(words: list[bytes]) -> bytes:
    """Return a list of names in the right form."""
    names = [name.strip(b",;&") for word in words for name in word.split(b",")]
    return b"&".join(filter(None, names))
