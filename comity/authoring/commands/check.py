"""`comity check expectations.toml`: test sentences about the files of a site."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from comity.authoring.expectations.documents import DEFAULT_FILE, Document, read_document
from comity.authoring.expectations.judging import Judge
from comity.authoring.expectations.reports import FORMS, Result
from comity.authoring.expectations.sentences import FORMS as SENTENCE_FORMS
from comity.authoring.expectations.sentences import GROUPS, NOUNS, VERBS
from comity.authoring.sites import agent_for, is_url, load
from comity.authoring.source import SiteSource
from comity.gate.run.console import complain
from comity.policies import PolicyError
from comity.policies.answers.fetched import Availability, availability
from comity.policies.syntax.printable import printable

FAILED = 1  # exit status: a sentence does not hold


EPILOG = f"""\
FILE has the folder or the URL of a site (`site`), and sentences:

    folder = "public"
    expectations = ["everybody may fetch /", "GPTBot must not fetch /x/**"]

`comity explain DIR --as-expectations` prints such a file, with sentences that
hold today. Sentences have these forms:

{"".join(f"    {form.pattern}{chr(10)}" for form in SENTENCE_FORMS)}
CRAWLER: {", ".join(GROUPS)}, or the name of a crawler.
PATH: `/x` is one path, `/x/**` is `/x/` with all below it.
USE is a noun:

    {", ".join(NOUNS)}

or, behind `may` and `must not`, a verb:

    {", ".join(VERBS)}

Exit status: 0 all sentences hold; 1 some do not; 2 wrong usage, a sentence that
is not understood, or a file or site that cannot be read.
"""


def add_options(parser: ArgumentParser) -> None:
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=f"file with sentences, in TOML (default: {DEFAULT_FILE})",
    )
    parser.add_argument(
        "--site",
        metavar="DIR|URL",
        help="check this folder or site, in place of the one that FILE names",
    )
    parser.add_argument(
        "--origin",
        metavar="URL",
        help="address of the site whose files are in the folder, in place of `origin` in FILE",
    )
    parser.add_argument(
        "--format", choices=FORMS, default="text", help="form of the output (default: %(default)s)"
    )


def run(options: Namespace) -> int:
    """Check the sentences of all files. Return the exit status: 0, or FAILED.

    PolicyError: a file, a sentence or a site cannot be read."""
    documents = [_document(name, options) for name in options.files or [DEFAULT_FILE]]
    results = [result for document in documents for result in _check(document)]
    FORMS[options.format](results)
    return 0 if all(result.answer.holds for result in results) else FAILED


def _document(name: str, options: Namespace) -> Document:
    document = read_document(Path(name))
    if options.site is not None:
        origin = None if is_url(options.site) else document.origin
        document = document._replace(target=options.site, origin=origin)
    return document if options.origin is None else document._replace(origin=options.origin)


def _check(document: Document) -> list[Result]:
    source = load(document.target, origin=document.origin)
    _check_that_files_were_read(document, source)
    judge = Judge(source, agent_for(document.target), document.now)
    results = []
    for sentence in document.sentences:
        try:
            results.append(Result(document, sentence, judge.check(sentence.meaning)))
        except PolicyError as error:
            raise PolicyError(f"{document.name}:{sentence.line}: {error}") from None
    return results


def _check_that_files_were_read(document: Document, source: SiteSource) -> None:
    """Print the notes about a site. PolicyError: a policy file of it could not be read."""
    for note in (*source.place_notes, *source.notes):
        complain(note)
    for file in source.files:
        fetched = file.fetched
        if availability(fetched) is Availability.UNREACHABLE or fetched.unreachable_since:
            cause = printable(fetched.error) or f"HTTP status {fetched.status}"
            raise PolicyError(f"{file.name} cannot be fetched: {cause}")
    if not source.files and not source.pages and not is_url(document.target):
        raise PolicyError(
            f"{document.target} has no policy file and no page: write the folder of the site"
        )
