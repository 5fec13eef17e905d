"""`comity dataset repeat OUT.croissant.json`: make a dataset again, and compare the octets."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scrapy.settings import BaseSettings

from comity.crawler.commands.base import process_count, program_name
from comity.crawler.commands.dataset.shared import WORKERS_HELP, place_argument
from comity.dataset.evidence.run import (
    RUN,
    FileFact,
    Run,
    changed_files,
    differences,
    file_fact,
    read_manifest,
)
from comity.dataset.files.folders import KEPT, evidence_path
from comity.dataset.files.places import path_of
from comity.dataset.records import DatasetError
from comity.gate.options import declared
from comity.gate.run.console import complain, say
from comity.policies.syntax.printable import printable

SAME, DIFFERS = 0, 1
SUFFIX = ".croissant.json"
# The settings on which tags and exports depend.
SETTINGS = (
    "USER_AGENT",
    *(
        setting.name
        for setting in (
            declared.AGENT,
            declared.PROFILE,
            declared.PURPOSES,
            declared.USES,
            declared.USE_DEFAULTS,
            declared.VOCABULARY,
            declared.ARRANGEMENTS,
            declared.OPT_OUT,
            declared.CONTENT_USAGE,
            declared.AUTOMATION_REQUIRED,
            declared.UNREACHABLE_USES,
            declared.ELEMENTS,
            declared.TAG,
            declared.HTML_PARSER,
        )
    ),
)
# Options that change no octet, or that `repeat` chooses.
_UNSAID = ("help", "set", "workers", "executor", "index", "output", "evidence")

AddArguments = Callable[[ArgumentParser], None]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "manifest",
        type=place_argument,
        metavar="OUT.croissant.json",
        help="the manifest of a dataset that `dataset tag` or `dataset export` wrote",
    )
    parser.add_argument(
        "-o",
        dest="output",
        default="",
        metavar="NEW",
        help="keep the dataset that is made again (default: it is removed after the comparison)",
    )
    parser.add_argument("--workers", type=process_count, metavar="N", help=WORKERS_HELP)


def moment_of(opts: Namespace, now: datetime) -> datetime:
    """Return the moment of a run: that of the repeated run, or `now`."""
    moment: datetime | None = getattr(opts, "moment", None)
    return moment or now


def facts(
    action: str,
    add_arguments: AddArguments,
    opts: Namespace,
    settings: BaseSettings,
    moment: datetime,
    read: Sequence[Path],
    captures: Mapping[str, str],
    **resolved: Any,
) -> dict[str, Any]:
    """Return the facts about a run for its manifest.

    `read`: the files with records and tags. `captures`: the name of each source of captures -> its
    version. `resolved`: options that stand for those that the operator left to the command.

    DatasetError: a file cannot be read."""
    options = {
        one.dest: getattr(opts, one.dest)
        for one in _options(add_arguments)
        if one.dest not in _UNSAID
    }
    try:
        inputs = [file_fact(path) for path in read]
        sources = [_capture(path_of(name), version) for name, version in captures.items()]
        registries = [file_fact(Path(path)) for path in settings.getlist("COMITY_OPT_OUT")]
    except OSError as error:
        raise DatasetError(f"{error.filename} cannot be read: {error.strerror}") from None
    return Run(
        action,
        [program_name(), "dataset", *sys.argv[1:]],  # Scrapy has removed the name
        options | resolved,
        {name: settings.get(name) for name in SETTINGS if settings.get(name) is not None},
        moment,
        inputs,
        sources,
        registries,
    ).facts()


def _capture(path: Path, version: str) -> FileFact:
    fact = file_fact(path, version)
    # A store has no hash. The date of a policy file on the disk counts as its fetch time.
    is_file = fact.sha256 and not path.name.endswith((".warc", ".warc.gz"))
    return fact if is_file or not fact.sha256 else fact._replace(version="")


def _options(add_arguments: AddArguments) -> Sequence[Any]:
    parser = ArgumentParser(add_help=False)
    add_arguments(parser)
    return parser._actions


def _restored(add_arguments: AddArguments, options: Mapping[str, Any]) -> Namespace:
    """Return the options of a run. Options that a manifest does not have get their defaults."""
    restored = Namespace()
    for option in _options(add_arguments):
        value = options.get(option.dest, option.default)
        if option.type and isinstance(value, list):
            value = [option.type(member) for member in value]
        elif option.type and isinstance(value, str):
            value = option.type(value)
        setattr(restored, option.dest, value)
    return restored


def _use_kept(restored: Namespace, described: Mapping[str, Any], old: Path) -> dict[str, str]:
    """Change the options to use the copies that a run with --refresh has kept.

    Return the facts about the file. DatasetError: it kept none."""
    # Imported here because pyarrow is needed only for evidence and columns.
    from comity.dataset.evidence.schema import policies_path, read

    kept = evidence_path(old, KEPT)
    evidence = {file["name"]: file["sha256"] for file in described.get("comity:evidence", ())}
    if kept.name not in evidence:
        raise DatasetError(
            f"{old} was tagged by policies that were fetched then (--refresh), and they were not"
            " kept: tag it again with --keep-policies"
        )
    names = {
        (row["url"], row["fetched_at"]): row["source"]
        for batch in read(policies_path(old), ["url", "fetched_at", "source"])
        for row in batch.to_pylist()
        if row["source"] is not None
    }
    restored.refresh, restored.policies = False, [[str(kept)]]
    restored.sources = lambda copies: [names.get(copy) for copy in copies]
    return FileFact(str(kept), evidence[kept.name])._asdict()


def run(
    opts: Namespace,
    settings: BaseSettings,
    actions: Mapping[str, tuple[AddArguments, Callable[[Namespace, BaseSettings, None], int]]],
) -> int:
    """Repeat a run, compare its files, and return the exit status.

    `actions`: name -> its arguments and its function. DatasetError: the manifest is not valid."""
    path: Path = opts.manifest
    described = read_manifest(path)
    facts = described[RUN]
    old = path.with_name(path.name.removesuffix(SUFFIX))
    if facts["action"] not in actions or not path.name.endswith(SUFFIX):
        raise DatasetError(f"{path} is not the manifest of `dataset {' or '.join(actions)}`")
    add_arguments, do = actions[facts["action"]]
    if "comity:expiredAt" in described:
        raise DatasetError(f"{old} has lost records by `dataset expire`: nothing can be compared")
    if "comity:evidence" not in described:
        complain(f"{old} has no evidence: only its records are compared")
    restored = _restored(add_arguments, facts["options"])
    captures = facts["captures"]
    if facts["options"].get("refresh"):
        captures = [_use_kept(restored, described, old)]
    changed = [
        *changed_files(facts["inputs"], "input"),
        *changed_files(captures, "capture"),
        *changed_files(facts["registries"], "registry"),
    ]
    for line in changed:
        say(printable(line))
    if changed:
        return DIFFERS
    for name in SETTINGS:
        settings.set(name, facts["settings"].get(name), priority="cmdline")
    with ExitStack() as stack:
        name = opts.output
        if not name:
            folder = stack.enter_context(TemporaryDirectory(prefix="comity-repeat-"))
            name = f"{folder}/{old.name}"
        is_folder = any(file.get("@type") == "cr:FileSet" for file in described["distribution"])
        new = path_of(name.rstrip("/"))
        if new == old:
            raise DatasetError(f"{old} would be overwritten: give -o another name")
        restored.output = f"{name.rstrip('/')}/" if is_folder else name
        restored.workers, restored.moment = opts.workers, datetime.fromisoformat(facts["moment"])
        restored.evidence = "comity:evidence" in described
        do(restored, settings, None)
        differing = [*differences(described, old, new)]
    for line in differing:
        say(printable(line))
    if not differing:
        say(f"{old} is made again with the same octets")
    return DIFFERS if differing else SAME
