"""The formats in which sites publish policies. Only this module lists all of them by name.

Formats of other packages are found by their entry points in the group `comity.formats`
(docs/formats.md).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from comity.policies.answers.element_rule import ALL
from comity.policies.answers.errors import PolicyError
from comity.policies.answers.fetched import Availability, Fetched, availability
from comity.policies.answers.rule import declare
from comity.policies.formats import (
    acap,
    ai_txt,
    aipref,
    automation,
    c2pa,
    clean_param,
    content_signals,
    plus,
    robots,
    robots_meta,
    rsl,
    tdmrep,
    training_rules,
    trust_txt,
)
from comity.policies.formats.format import Format
from comity.policies.formats.installed import check_claims, load_installed
from comity.policies.vocabulary.table import Vocabulary, add_vocabularies

INSTALLED = load_installed()  # formats of other packages
FORMATS: tuple[Format, ...] = check_claims(
    (
        robots.FORMAT,
        acap.FORMAT,
        automation.FORMAT,
        aipref.FORMAT,
        content_signals.FORMAT,
        training_rules.FORMAT,
        clean_param.FORMAT,
        ai_txt.FORMAT,
        robots_meta.FORMAT,
        rsl.FORMAT,
        tdmrep.FORMAT,
        trust_txt.FORMAT,
        plus.FORMAT,
        c2pa.FORMAT,
        *INSTALLED,
    )
)
for _format in FORMATS:
    declare(_format.rules)
    if _format.vocabulary:
        try:
            add_vocabularies(_format.vocabulary)
        except PolicyError as _error:
            raise PolicyError(
                f"the vocabulary of the format `{_format.name}`: {_error}: mend or uninstall it"
            ) from None

for _format in FORMATS:
    for _term in (term for file in _format.files for term in file.refuses or ()):
        if _term != ALL and not Vocabulary.shipped().has(_term):
            raise PolicyError(
                f"the format `{_format.name}` may refuse `{_term}`, which is not a word "
                "of a vocabulary: write vocabulary:word"
            )

# The files that are fetched from every origin. Those that may refuse requests come first.
FILES = tuple(
    sorted(
        (file for format_ in FORMATS for file in format_.files),
        key=lambda file: not file.restricts_access,
    )
)
WELL_KNOWN = tuple(file.path for file in FILES)
_FILES_BY_PATH = {file.path: file for file in FILES}
# Name of a header field, in lower case -> the name of its format.
FIELDS = {name: format_.name for format_ in FORMATS for name in format_.header_fields}
ROBOTS_LINES = frozenset(name for format_ in FORMATS for name in format_.robots_lines)


def accepted(url: str, fetched: Fetched) -> Fetched:
    """Return the response for a policy file, with an error if its format rejects the content.

    A response without a policy file, such as a 404, is returned unchanged.
    """
    file = _FILES_BY_PATH.get(urlsplit(url).path)
    error = (
        file.rejection(fetched) if file and availability(fetched) is Availability.PRESENT else ""
    )
    return fetched.failed(error) if error else fetched


def lifetime(url: str, fetched: Fetched) -> float:
    """Return the number of seconds for which a policy file may be used, by its own content.

    Infinity means that the file sets no limit. If several formats read a limit, the shortest one
    is returned.
    """
    return min(
        (format_.lifetime(url, fetched) for format_ in FORMATS if format_.lifetime),
        default=float("inf"),
    )
