"""Write docs/survey.md: the formats, lines, words and mistakes in the files of some samples.

    python -m tests.survey.run --folder FOLDER [--samples FILE.toml] [--page FILE.md]

FILE.toml describes the samples (samples.py), by default corpus.toml. FOLDER has their files, which
are not part of the source tree. No network is used."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from comity.policies.answers.rule import RULES
from comity.policies.formats import FORMATS
from comity.policies.vocabulary.known_crawlers import known
from tests.generated import page_of, table
from tests.survey.counting import Counts, count
from tests.survey.samples import Samples, read_samples

Word = TypeVar("Word", str, tuple[str, str])
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE = ROOT / "docs" / "survey.md"
DESCRIPTION = HERE / "corpus.toml"
MOST = 25  # the maximum number of rows of a table of names
TITLES = {format_.name: format_.title for format_ in FORMATS}
FEWEST = 2  # sites that write a line that no format has


def page(samples: Samples) -> str:
    """Return the page about some samples."""
    counts = [count(sample.sites) for sample in samples.samples]
    main = _sum(one for one, sample in zip(counts, samples.samples, strict=True) if sample.is_main)
    others = _sum(
        one for one, sample in zip(counts, samples.samples, strict=True) if not sample.is_main
    )
    return "\n".join(
        [
            "# Survey of policy files",
            "",
            "This page counts the formats, lines, words and mistakes in files of real sites. The",
            "counts are the reason to read a format. `python -m tests.survey.run --folder FOLDER`",
            "writes the page, without network, from the samples in `tests/survey/corpus.toml`. Their",
            "files are in FOLDER, which is not part of comity. Each count is a number of sites: a",
            "site counts once for each word.",
            "",
            "## The samples",
            "",
            samples.intro,
            table(
                ("sample", "sites", "time", "source"),
                (
                    (
                        f"**{one.title}**" if one.is_main else one.title,
                        str(len(one.sites)),
                        one.date,
                        one.source,
                    )
                    for one in samples.samples
                ),
            ),
            f"The main sample is in bold. Shares are shares of its {main.sites} sites. The other"
            f" samples have {others.sites} sites together.",
            "",
            "## Formats",
            table(
                ("format", "main sample", "others", "reason to read it"),
                _formats(main, others),
            ),
            "## Lines of robots.txt",
            table(
                ("line", "format", "sites", "share"),
                (
                    (f"`{word}`", TITLES[format_], str(sites), _share(sites, main))
                    for (format_, word), sites in _most(main.words)
                ),
            ),
            "These lines belong to no format that comity reads:",
            table(
                ("line", "sites", "share"),
                (
                    (f"`{name}`", str(sites), _share(sites, main))
                    for name, sites in _most(main.unknown)
                    if sites >= FEWEST
                ),
            ),
            "## Words in the other samples",
            table(("format", "words, and the sites that write them"), _words(others)),
            "## Crawlers",
            "",
            f"{main.closed} of the {main.sites} sites of the main sample refuse everything to the"
            " crawlers that they do not name.",
            table(
                ("name", "operator", "sites that name it", "refused everything there"),
                (
                    (
                        f"`{name}`",
                        crawler.operator if (crawler := known(name)) else "",
                        str(sites),
                        str(main.refused[name]),
                    )
                    for name, sites in _most(main.named)
                ),
            ),
            "The last column has the sites that let an unnamed crawler fetch the root.",
            "",
            "## Contradictions and mistakes",
            table(
                ("sample", "sites", "contradictory", "between two formats", "with mistakes"),
                (
                    (
                        sample.title,
                        str(one.sites),
                        str(one.contradicting),
                        str(one.between_formats),
                        f"{one.faulty} ({_share(one.faulty, one)})",
                    )
                    for sample, one in zip(samples.samples, counts, strict=True)
                ),
            ),
            "A *contradictory* site permits and refuses one use at once. *Mistakes* are errors and",
            "warnings of [`comity lint`](authoring.md).",
            "",
            "## Findings by rule",
            table(
                ("rule", "severity", "main sample", "share", "others"),
                (
                    (
                        f"[`{rule}`](rules/{rule.partition('.')[0]}.md#{rule})",
                        RULES[rule].severity.value,
                        str(main.rules[rule]),
                        _share(main.rules[rule], main),
                        str(others.rules[rule]),
                    )
                    for rule, _ in _sorted(main.rules + others.rules)
                ),
            ).rstrip(),
            "",
            "## Count other sites",
            "",
            "[`comity crawl policies`](policy-captures.md) fetches the policy files of many sites",
            "into a WARC file. Common Crawl has WARC files with robots.txt files. Name such a file",
            "in a description like `tests/survey/corpus.toml`, and run `python -m tests.survey.run",
            "--samples FILE.toml --folder FOLDER --page PAGE.md` in the source tree.",
            "",
        ]
    ).replace("\n\n\n", "\n\n")


def _formats(main: Counts, others: Counts) -> Iterator[tuple[str, ...]]:
    for format_ in FORMATS:
        found = (main.formats[format_.name], others.formats[format_.name])
        specified = f"not found; its specification, {format_.specification}"
        reason = "found in the samples" if sum(found) else specified
        yield (
            f"[{format_.title}]({page_of(format_)})",
            f"{found[0]} ({_share(found[0], main)})",
            str(found[1]),
            reason,
        )


def _words(counts: Counts) -> Iterator[tuple[str, str]]:
    for format_ in FORMATS:
        words = {
            word: sites for (name, word), sites in counts.words.items() if name == format_.name
        }
        if words:
            listed = ", ".join(f"`{word}` {sites}" for word, sites in _sorted(Counter(words)))
            yield format_.title, listed


def _share(sites: int, counts: Counts) -> str:
    if not sites:
        return "0 %"
    share = 100 * sites / counts.sites
    return f"{share:.0f} %" if share >= 1 else "< 1 %"


def _most(counter: Counter[Word]) -> list[tuple[Word, int]]:
    return _sorted(counter)[:MOST]


def _sorted(counter: Counter[Word]) -> list[tuple[Word, int]]:
    """Return the entries, the most frequent first, and entries with equal counts by name."""
    return sorted(counter.items(), key=lambda entry: (-entry[1], str(entry[0])))


def _sum(counts: Iterable[Counts]) -> Counts:
    total = Counts()
    for one in counts:
        for name, value in vars(one).items():
            setattr(total, name, getattr(total, name) + value)
    return total


def main(arguments: Sequence[str] | None = None) -> None:
    parser = ArgumentParser(prog="python -m tests.survey.run", description="Write a survey")
    parser.add_argument("--samples", type=Path, default=DESCRIPTION, help="TOML file")
    parser.add_argument("--folder", type=Path, required=True, help="the folder of the files")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    options = parser.parse_args(arguments)
    try:
        text = page(read_samples(options.samples, options.folder))
    except FileNotFoundError as error:
        parser.error(f"{error}: name the folder of the samples with --folder")
    options.page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
