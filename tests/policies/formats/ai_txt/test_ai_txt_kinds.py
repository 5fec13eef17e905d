"""The kind of a file that a site serves as /ai.txt, from its lines.

Each sample shows a form of real files in a file of our own.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from comity.policies.formats.ai_txt import kind_of, parse, spawning
from tests.selection import one_in


class Sample(NamedTuple):
    name: str
    body: str
    kind: str
    findings: tuple[str, ...] = ("ait.format 0",)  # of the element-level parser, with their lines
    refused: tuple[str, ...] = ()  # of TARGETS, by Spawning's form
    rules: int = 0


TARGETS = ("/", "/photo.JPG?size=2", "/photo.jpg/", "/a.h", "/a.html", "/private/x")

SAMPLES = [
    # The output of Spawning's generator: types by their extensions, and everything else.
    Sample(
        "spawning-everything",
        "# Spawning AI\n\nUser-Agent: *\nDisallow: *.jpg\nDisallow: *.html\n"
        "Disallow: *.h\nDisallow: /\nDisallow: *\n",
        "spawning",
        refused=TARGETS,
    ),
    Sample(
        "spawning-some",
        "# Spawning AI\n\nUser-Agent: *\nDisallow: *.jpg\nDisallow: *.h\nAllow: *.html\nAllow: /\n",
        "spawning",
        refused=("/photo.JPG?size=2", "/a.h"),
    ),
    Sample(
        "spawning-agents",
        "User-Agent: somebot\nDisallow: /\n\nUser-Agent: ours\nDisallow: /private/\n",
        "spawning",
        refused=("/private/x",),
    ),
    Sample("spawning-no-agent", "Disallow: *.jpg\n", "spawning", refused=("/photo.JPG?size=2",)),
    # A file like robots.txt that permits, followed by unknown keys: it refuses nothing.
    Sample(
        "keys",
        "# For crawlers\n\nUser-agent: *\nAllow: /\n\nSite-name: Ours\nTopics: stones\n"
        "Docs: /docs\n- one thing\n- another\n",
        "spawning",
    ),
    # Invented flags.
    Sample(
        "flags",
        "# Discovery\nsoftware-name: Ours\nai-crawling: allowed\n"
        "sitemap: https://example.com/sitemap.xml\n",
        "",
    ),
    # Prose.
    Sample(
        "markdown",
        "# Guidelines\n\n## Permitted\nTraining is permitted:\n\n### Allowed\n- posts\n\n"
        "## Restrictions\n- Do not copy.\n",
        "",
    ),
    Sample(
        "prose-with-keywords", "The path to take: disallow nothing.\nAny element of surprise.\n", ""
    ),
    # HTML.
    Sample("html", "<!DOCTYPE html><title>x</title>\nUser-agent: *\nDisallow: /\n", ""),
    # Nothing.
    Sample("empty", "", "", ()),
    Sample("comments", "# nothing yet\n\n  # really", "", ()),
    # The element-level language, and where its author forgot half of it.
    Sample(
        "elements",
        "User-agent: *\n  Path: / html\n    Element: p\n      Disallow: Train\n",
        "elements",
        (),
        rules=1,
    ),
    Sample(
        "elements-no-path",
        "    Element: p\n      Disallow: Train\n",
        "elements",
        ("ait.orphan 1", "ait.orphan 2"),
    ),
    Sample(
        "elements-flat",
        "User-agent: *\nPath: /private/ html\nDisallow: *\n",
        "elements",
        ("ait.indentation 2", "ait.indentation 3", "ait.orphan 3"),
        rules=1,
    ),
    Sample(
        "elements-by-url",
        "User-agent: *\n  Path: https://example.com/ html\n      Disallow: *\n",
        "elements",
        ("ait.path 2", "ait.orphan 3"),
        rules=1,
    ),
    # Both in one file: lines of one are not read as the other.
    Sample(
        "both",
        """\
User-agent: *
Disallow: /a
Disallow: Cite
  Path: / html
    Element: p
      Disallow: Train
User-agent: ours
      Disallow: /private/
Disallow: *.h
""",
        "elements",
        (
            *(
                "ait.indentation 2",
                "ait.action 2",
                "ait.orphan 2",
                "ait.indentation 3",
                "ait.orphan 3",
            ),
            *("ait.action 8", "ait.orphan 8", "ait.indentation 9", "ait.action 9", "ait.orphan 9"),
        ),
        refused=("/a.h",),
        rules=1,
    ),
]


@pytest.mark.requirement("AIT-15", "SPAWN-1")
@pytest.mark.parametrize("sample", one_in(2, SAMPLES), ids=[sample.name for sample in SAMPLES])
def test_a_file_is_read_as_what_it_is(sample: Sample) -> None:
    text = sample.body.encode()
    assert kind_of(text) == kind_of(b"\xef\xbb\xbf" + text) == sample.kind
    read = parse(text)
    assert len(read.rules) == sample.rules
    assert tuple(f"{finding.rule} {finding.line}" for finding in read.findings) == sample.findings
    patterns = spawning(text).for_agent("ours")
    assert tuple(target for target in TARGETS if patterns.statements(target)) == sample.refused


@pytest.mark.requirement("SPAWN-1")
def test_a_page_is_none() -> None:
    text = b"User-agent: *\nDisallow: /\n"
    assert kind_of(text) == "spawning"
    assert kind_of(b"<!DOCTYPE html>\n" + text) == kind_of(b"<pre>\n" + text) == ""


@pytest.mark.requirement("SPAWN-1")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_the_kind_is_told_in_other_encodings(encoding: str) -> None:
    assert kind_of("User-agent: *\n  Path: / html\n".encode(encoding)) == "elements"


@pytest.mark.requirement("AIT-15")
def test_findings_say_which_format_it_is() -> None:
    (finding,) = parse(b"User-agent: *\nDisallow: /\n").findings
    assert finding.message == "This file is in Spawning's format, the opt-out by file type."
    (finding,) = parse(b"prose").findings
    assert finding.message == "This file is in neither of the formats of ai.txt."
