"""Find lines that tell everybody the place of something that only its owner should find.

draft-liao-aipref-autoctl-core security-considerations: "Care SHOULD be taken to avoid exposing
sensitive scope details that could be exploited by adversaries." A policy file protects nothing: who
looks for a backup or a login reads it first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import unquote

from comity.authoring.source import SiteSource
from comity.policies import Finding
from comity.policies.formats import FORMATS
from comity.policies.formats.authoring import Draft
from comity.policies.syntax.printable import printable

MAX_REPORTED = 20  # the maximum number of lines that are reported in one file

# Last segments of paths, in lower case. Names that only one well-known program has (`wp-admin`,
# `administrator`) tell nothing new.
_LAST = frozenset(
    """
    admin adminer adminer.php phpmyadmin cpanel
    backup backups dump dumps secret secrets confidential credentials passwords
    """.split()  # noqa: SIM905  # to be read as words
)
# Segments: repositories, configurations, copies of databases and files, and keys.
_ANYWHERE = re.compile(
    r"\.(?:git|svn|hg|env(?:\..+)?|ssh|aws|htpasswd)|wp-config.*"
    r"|[^*]+\.(?:sql|sqlite|dump|bak|kdbx|pem|pfx|p12)(?:\.(?:gz|bz2|xz|zip))?"
)

_NAMES_OF_PATHS = {
    form: b"|".join(
        re.escape(directive.name.lower().encode())
        for format_ in FORMATS
        for directive in format_.authoring.directives
        if directive.form == form
        and "path" in directive.value.split()
        and not directive.name.lower().startswith(("allow", "acap-allow"))
    )
    for form in ("line", "member")
}
_PATHS = re.compile(
    rb'[ \t]*(?:%(line)s)[ \t]*:([^#\r\n]*)|.*"(?:%(member)s)"[ \t]*:[ \t]*("[^"]*")'
    % {form.encode(): names for form, names in _NAMES_OF_PATHS.items()},
    re.IGNORECASE,
)
_PATH = re.compile(rb"/[^ \t,\"]*")


def check_exposed_paths(source: SiteSource) -> Iterator[Finding]:
    """Yield a finding for each line with such a path."""
    for file in source.files:
        yield from islice(_in_file(Draft(file.url, file.fetched.body)), MAX_REPORTED)


def _in_file(draft: Draft) -> Iterator[Finding]:
    if draft.is_markup:
        return
    for line in range(1, draft.lines + 1):
        match = _PATHS.match(draft.line(line))
        group = match.lastindex if match else None
        if match is None or group is None:
            continue
        for path in _PATH.finditer(match[group]):
            if _is_telling(path[0]):
                yield Finding(
                    rule="comity.exposed-path",
                    message=f"Everybody can read this file. `{printable(path[0])}` shows where "
                    "to attack. Protect the path by a login, and delete the line.",
                    url=draft.url,
                    line=line,
                    column=match.start(group) + path.start() + 1,
                    length=len(path[0]),
                )
                break


def _is_telling(path: bytes) -> bool:
    """Return True if a path pattern leads to something that only its owner should find."""
    pattern = path.partition(b"?")[0].rstrip(b"*$/")
    segments = unquote(pattern.decode("utf-8", "replace")).lower().split("/")
    return segments[-1] in _LAST or any(map(_ANYWHERE.fullmatch, segments))
