"""The survey of docs/survey.md: its counts of a small sample, and its page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from comity.crawler.feeds.policy_archive import write_answer
from comity.crawler.feeds.warc_records import RecordWriter
from comity.policies import Fetched
from comity.policies.formats import FORMATS
from tests.survey.counting import count
from tests.survey.run import DESCRIPTION, HERE, PAGE, main, page
from tests.survey.samples import ORIGIN, SampledSite, read_samples

SAMPLE = HERE / "sample"
FOLDER = os.environ.get("SURVEY_FOLDER", "")  # the files of corpus.toml, which are not in the tree


def robots(text: str) -> SampledSite:
    return SampledSite("a", ORIGIN, {"/robots.txt": Fetched(status=200, body=text.encode())}, {})


def test_the_page_of_a_small_sample_is_as_recorded() -> None:
    """To record it: python -m tests.survey.run --samples ... --folder ... --page expected.md."""
    expected = (SAMPLE / "expected.md").read_text("utf-8")
    made = page(read_samples(SAMPLE / "samples.toml", SAMPLE))
    assert _without_absent(made) == _without_absent(expected)


def _without_absent(text: str) -> list[str]:
    """Return the lines without the formats that no sample has: a new format changes nothing."""
    return [line for line in text.splitlines() if "| not found; " not in line]


def test_a_site_counts_once_for_each_word() -> None:
    counts = count([robots("User-agent: a\nDisallow: /x\nDisallow: /y\nHost: a\nHost: b\n")])
    assert counts.words == {("robots", "user-agent"): 1, ("robots", "disallow"): 1}
    assert counts.unknown == {"host": 1}
    assert counts.formats == {"robots": 1}


def test_crawlers_are_counted_as_named_and_as_refused() -> None:
    counts = count(
        [
            robots("User-agent: GPTBot\nDisallow: /\n\nUser-agent: bingbot\nDisallow: /x\n"),
            robots("User-agent: *\nDisallow: /\n\nUser-agent: GPTBot\nDisallow: /\n"),
        ]
    )
    assert counts.named == {"gptbot": 2, "bingbot": 1}
    assert counts.refused == {"gptbot": 1}  # the other site refuses everybody
    assert counts.closed == 1


def test_contradictions_between_formats_and_mistakes_are_counted() -> None:
    lines = "User-agent: *\nContent-Signal: ai-train=yes\nContent-Usage: train-ai=n\nDisallow:\n"
    counts = count([robots(lines), robots("User-agent: *\nDisallow: /x\n")])
    assert counts.rules["comity.contradiction"] == 1
    assert (counts.contradicting, counts.between_formats, counts.sites) == (1, 1, 2)
    assert counts.formats["content-signals"] == counts.formats["aipref"] == 1


def test_pages_and_files_of_other_formats_are_counted_with_their_words() -> None:
    html = b'<meta name="robots" content="noai"><p>noindex'
    sites = [
        SampledSite("a", ORIGIN, {}, {"/a.html": Fetched(status=200, body=html)}),
        SampledSite(
            "b",
            ORIGIN,
            {"/.well-known/tdmrep.json": Fetched(status=200, body=b'[{"location": "/"}]')},
            {},
        ),
    ]
    counts = count(sites)
    assert counts.formats == {"robots-meta": 1, "tdmrep": 1}
    assert counts.words[("tdmrep", "location")] == 1
    assert counts.words[("robots-meta", "noai")] == 1


def test_warc_files_are_samples_of_several_sites(tmp_path: Path) -> None:
    fetched = Fetched(
        status=200, headers=((b"X-Robots-Tag", b"noai"),), body=b"User-agent: *\nDisallow: /x\n"
    )
    with (tmp_path / "a.warc.gz").open("wb") as file:
        records = RecordWriter(file, compressed=True)
        for url in (
            "http://a.example/robots.txt",
            "http://a.example/page",
            "http:///robots.txt",  # no host
            "http://b.example/robots.txt",
        ):
            write_answer(records, url, fetched)
    description = tmp_path / "samples.toml"
    description.write_text(
        'intro = ""\n[[samples]]\ntitle = "x"\nfiles = ["*.warc.gz"]\npath = ""\nsource = ""\ndate = ""\n'
    )
    [sample] = read_samples(description, tmp_path).samples
    assert [(site.name, [*site.files], [*site.pages]) for site in sample.sites] == [
        ("http://a.example", ["/robots.txt"], ["/page"]),
        ("http://b.example", ["/robots.txt"], []),
    ]
    page_ = sample.sites[0].pages["/page"]
    assert (b"X-Robots-Tag", b"noai") in page_.headers
    assert page_.body == fetched.body


def test_a_pattern_without_files_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file matches robots"):
        read_samples(SAMPLE / "samples.toml", tmp_path)


def test_the_page_names_its_command_and_its_samples() -> None:
    text = PAGE.read_text("utf-8")
    assert "`python -m tests.survey.run --folder FOLDER`" in text
    assert all(one.title in text for one in FORMATS if one.name in ("robots", "rsl", "c2pa"))
    assert "They are no random sample of the web" in " ".join(text.split())


def test_the_command_writes_the_page_of_the_named_folder(tmp_path: Path) -> None:
    made = tmp_path / "page.md"
    main([f"--samples={SAMPLE / 'samples.toml'}", f"--folder={SAMPLE}", f"--page={made}"])
    assert made.read_text("utf-8") == page(read_samples(SAMPLE / "samples.toml", SAMPLE))


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ([], "arguments are required: --folder"),
        (["--folder=nowhere"], "name the folder of the samples with --folder"),
    ],
)
def test_the_command_asks_for_the_folder(
    folder: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(folder)
    assert said in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER, reason="SURVEY_FOLDER does not name the folder of the samples")
def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page(read_samples(DESCRIPTION, Path(FOLDER)))
