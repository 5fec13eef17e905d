"""Make and try the files of a release: `make release`.

    python -m tests.release.run [--tag]

The wheel and the source distribution are written to dist/. In the unpacked source distribution
`make test` passes. The wheel is installed into empty environments, and the examples of README.md
run there: with the newest versions, with the oldest that setup.cfg promises, and with each extra.
Nothing is published: the last lines say which commands do that. `--tag` makes the tag here."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import comity
from tests.release.distributions import Distributions, build, run
from tests.release.environments import Environment, extras
from tests.sources import ROOT, git, is_checkout

DIST = ROOT / "dist"
UNSORTED = "## Changes since the last list"
PACKAGES = ("scrapy", "twisted", "turbohtml")  # with their versions in the output


def main() -> int:
    parser = argparse.ArgumentParser(description="Make and try the files of a release.")
    parser.add_argument("--tag", action="store_true", help="make the tag, but do not push it")
    options = parser.parse_args()
    tag = f"v{comity.__version__}"
    try:
        for fault in faults_of_tree(tag):
            raise RuntimeError(fault)
        with tempfile.TemporaryDirectory(prefix="comity-release-") as name:
            make_and_try(Path(name))
    except RuntimeError as error:
        print(f"No release: {error}", file=sys.stderr)
        return 1
    if options.tag:
        git("tag", "--annotate", tag, "--message", f"comity {comity.__version__}")
    print(f"\n{DIST} has the files of comity {comity.__version__}. To publish them:\n")
    if not options.tag:
        print(f"  git tag --annotate {tag} --message 'comity {comity.__version__}'")
    print(f"  git push origin {tag}")
    print("\nThe workflow release.yml then publishes them. By hand: twine upload dist/*")
    return 0


def faults_of_tree(tag: str) -> Iterator[str]:
    """Yield the reasons not to make a release of this tree."""
    if not is_checkout():
        yield "this is no checkout. Run `make release` in a clone of the repository."
        return
    if git("status", "--porcelain"):
        yield "the tree has changes. Commit or remove what `git status` lists."
    tagged = git("tag", "--list", tag) and git("rev-parse", f"{tag}^{{commit}}")
    if tagged and tagged != git("rev-parse", "HEAD"):
        yield f"{tag} is the tag of another commit. Increase comity.__version__."
    yield from faults_of_changes((ROOT / "CHANGELOG.md").read_text("utf-8"), comity.__version__)


def faults_of_changes(changes: str, version: str) -> Iterator[str]:
    """Yield the reasons why the list of changes is not ready. `changes`: the text of CHANGELOG.md."""
    if not re.search(rf"(?m)^## {re.escape(version)}$", changes):
        yield f"CHANGELOG.md has no section `## {version}`. Write it."
    if re.search(r"(?m)^- ", changes.partition(UNSORTED)[2]):
        yield f"CHANGELOG.md has lines below `{UNSORTED}`. Move them into the list of the version."


def make_and_try(folder: Path) -> None:
    """Build the distributions into dist/, and try them. `folder`: an empty folder."""
    with Step("wheel and source distribution"):
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        made = build(DIST)
    with Step("twine, check-wheel-contents, pyroma"):
        refuse(made.faults())
    floors = folder / "floors.txt"
    floors.write_text(run(["make", "--silent", "floors"], folder=ROOT).stdout, "utf-8")
    try_environment(made, "newest versions", Environment(folder / "newest"))
    try_environment(made, "oldest versions", Environment(folder / "oldest"), floors)
    for extra, installed in extras().items():
        try_environment(made, f"extra {extra}", Environment(folder / extra, extra, installed))
    with Step("make test in the unpacked source distribution"):
        test_sources(made, folder)


class Step:
    """Print the name of a step, and then its seconds and a remark."""

    remark = ""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> Step:
        print(f"{self._name} ...", end=" ", flush=True)
        self._began = monotonic()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        word = "FAILED after" if kind else "passed in"
        print(f"{word} {monotonic() - self._began:.0f} s{self.remark}", flush=True)


def test_sources(made: Distributions, folder: Path) -> None:
    with tarfile.open(made.sources) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / f"comity-{made.version}"
    run(["make", "test"], folder=unpacked)
    shutil.rmtree(unpacked)


def try_environment(
    made: Distributions, name: str, environment: Environment, constraints: Path | None = None
) -> None:
    """Install the wheel, and run the examples. `constraints`: a file of versions for pip."""
    with Step(name) as step:
        environment.install(made.wheel, constraints)
        versions = (f"{package} {environment.version(package)}" for package in PACKAGES)
        step.remark = f" ({', '.join(versions)})"
        refuse(environment.faults())
    shutil.rmtree(environment.folder)


def refuse(faults: Iterator[str] | list[str]) -> None:
    """Raise RuntimeError if there are faults."""
    if texts := list(faults):
        raise RuntimeError("\n\n".join(texts))


if __name__ == "__main__":
    sys.exit(main())
