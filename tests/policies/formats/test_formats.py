"""Requirements of every format, and the handling of broken formats of other packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from comity.policies import Agent, PolicyError, Reason, Site, Verdict
from comity.policies.answers.decision import Source
from comity.policies.answers.rule import REFUSES, RULES, Effect, Rule
from comity.policies.document.document import Content
from comity.policies.formats import FORMATS
from comity.policies.formats.authoring import Authoring, Draft, FileKind
from comity.policies.formats.distrusted import distrusted
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import (
    VERSION,
    AgentReading,
    Capture,
    Format,
    PageSource,
    SiteReading,
    WellKnown,
)
from comity.policies.formats.installed import check_claims, load_installed, mistakes
from comity.policies.page import RefusingSource
from comity.policies.vocabulary.table import Vocabulary, add_vocabularies
from tests.fuzz import targets
from tests.generated import folder_of, page_of
from tests.selection import one_in

ROOT = Path(__file__).parent.parent.parent.parent


def missing(each: Format) -> Iterator[str]:
    """Yield the parts that a format of comity still lacks (CONTRIBUTING.md, "Add a policy
    format").
    """
    page, folder = page_of(each), folder_of(each)
    if not (ROOT / "comity" / "policies" / "formats" / folder / "__init__.py").is_file():
        yield f"the folder comity/policies/formats/{folder}"
    if not (each.title and each.specification and each.summary):
        yield "title, specification and summary in its Format"
    if not list((ROOT / "tests" / "policies" / "formats" / folder).glob("test_*.py")):
        yield f"tests, in tests/policies/formats/{folder}"
    if not (ROOT / "docs" / page).is_file():
        yield f"the page docs/{page}"
    needed = [("docs/README.md", f"]({page})")]
    needed += [("docs/rules.md", f"`{rule}`") for rule in each.rules]
    texts = {name: (ROOT / name).read_text("utf-8") for name, _ in needed}
    yield from (f"{words} in {name}" for name, words in needed if words not in texts[name])
    yield from (
        f"{file.path} in KINDS of tests/fuzz/targets.py"
        for file in each.files
        if file.path not in targets.KINDS
    )
    lines = " ".join(targets.LINES["/robots.txt"]).lower()
    if each.robots_lines and not any(f"{name}:" in lines for name in each.robots_lines):
        yield "a line of robots.txt in LINES of tests/fuzz/targets.py"
    if each.header_fields and not {name.lower() for name in targets.FIELDS}.intersection(
        each.header_fields
    ):
        yield "a header field in FIELDS of tests/fuzz/targets.py"


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_every_format_is_whole(each: Format) -> None:
    assert list(mistakes(each)) == []
    needed = "\n".join(missing(each))
    assert not needed, f"what is missing:\n{needed}"
    assert each.rules
    assert all(
        isinstance(rule.effect, Effect) and rule.spec and rule.summary
        for rule in each.rules.values()
    )
    assert each.rules.items() <= RULES.items()


def test_every_rule_is_of_one_format_or_of_comity() -> None:
    of_formats = [rule for each in FORMATS for rule in each.rules]
    assert len(of_formats) == len(set(of_formats))
    own = ("comity.", "registry.")
    assert all(rule.startswith(own) for rule in RULES.keys() - of_formats)


def test_formats_that_claim_nothing_twice_are_all_right() -> None:
    assert check_claims(FORMATS) == FORMATS


SOUND = Format(name="sound", rules={"sound.no": Rule(REFUSES, "Sound", "it says no")})


@pytest.mark.requirement("EXT-2")
@pytest.mark.parametrize(
    ("claiming", "claimed"),
    [
        (
            SOUND._replace(name="tdmrep"),
            "the formats `tdmrep` and `tdmrep` both have the name `tdmrep`",
        ),
        (
            SOUND._replace(rules={"usage.other": SOUND.rules["sound.no"]}),
            "`aipref` and `sound` both have the prefix of rules `usage`",
        ),
        (
            SOUND._replace(rules={"comity.own": SOUND.rules["sound.no"]}),
            "`comity` and `sound` both have the prefix of rules `comity`",
        ),
        (
            SOUND._replace(rules={"registry.own": SOUND.rules["sound.no"]}),
            "`comity` and `sound` both have the prefix of rules `registry`",
        ),
        (
            SOUND._replace(files=(WellKnown("/ai.txt"),)),
            "`ai-txt` and `sound` both have the file `/ai.txt`",
        ),
        (
            SOUND._replace(robots_lines=("license",)),
            "`rsl` and `sound` both have the line of robots.txt `license`",
        ),
        (
            SOUND._replace(header_fields=(b"link",)),
            "`rsl` and `sound` both have the header field `link`",
        ),
    ],
    ids=["name", "prefix", "prefix of comity", "prefix of registries", "file", "line", "field"],
)
def test_what_is_claimed_twice_is_an_error(claiming: Format, claimed: str) -> None:
    with pytest.raises(PolicyError) as raised:
        check_claims((*FORMATS, claiming))
    assert claimed in str(raised.value)


# Formats that are installed


def install(folder: Path, text: str, module: str = "odd_format") -> None:
    """Install a module as pip does. Its text begins with the usual imports, then `text`."""
    begin = (
        "from comity.policies.answers.rule import REFUSES, Rule\n"
        "from comity.policies.formats.format import *\n"
    )
    (folder / f"{module}.py").write_text(begin + text)
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-format\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[comity.formats]\nodd = {module}:FORMAT\n")


ODD = 'FORMAT = Format(name="odd", version=1, rules={"odd.no": Rule(REFUSES, "Odd", "it says no")}'

CANNOT_BE_USED = {
    "import": (
        "import nowhere_to_be_had",
        "cannot be loaded (ModuleNotFoundError: No module named 'nowhere_to_be_had')",
    ),
    "attribute": ("", "cannot be loaded (AttributeError: "),
    "raises": ("1 / 0", "cannot be loaded (ZeroDivisionError: division by zero)"),
    "type": ("FORMAT = 'odd'", "is not a comity.policies.formats.format.Format but 'odd'"),
    "no version": (
        ODD.replace("version=1, ", "") + ")",
        f"does not say its version, and this is version {VERSION}",
    ),
    "version": (
        ODD.replace("version=1", "version=99") + ")",
        f"is written for version 99 of formats, and this is version {VERSION}",
    ),
    "name": (ODD.replace('"odd"', '"Odd One"') + ")", "its name is `Odd One`"),
    "rule": (ODD.replace("odd.no", "odd2.No") + ")", "`odd2.No` is not a rule"),
    "rule's type": (
        ODD.replace('Rule(REFUSES, "Odd", "it says no")', "None") + ")",
        "`odd.no` is not a rule",
    ),
    "rules": (
        ODD.replace("rules={", "rules=None and {") + ")",
        "has a mistake (AttributeError: ",
    ),
    "path": (ODD + ', files=(WellKnown("odd.txt"),))', "the path `odd.txt` is invalid"),
    "field": (
        ODD + ', header_fields=(b"X-Odd",), read_headers=print)',
        "`X-Odd` is not the name of a line or field in lower case",
    ),
    "line": (
        ODD + ', robots_lines=("Odd",))',
        "`Odd` is not the name of a line or field in lower case",
    ),
    "reader": (ODD + ', header_fields=(b"x-odd",))', "it has header fields, but no read_headers"),
}


@pytest.mark.requirement("EXT-2")
@pytest.mark.parametrize("case", CANNOT_BE_USED)
def test_a_format_that_cannot_be_used_is_an_error_with_its_name(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, message = CANNOT_BE_USED[case]
    module = f"odd_{case.replace(' ', '_').replace(chr(39), '_')}"  # a module is loaded once
    install(tmp_path, text, module)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PolicyError) as raised:
        load_installed()
    assert str(raised.value).startswith("the format `odd` of odd-format ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


OWN_WORDS = "[vocabulary.odd.terms]\nno = {}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "is not TOML"),
        ("replaces = true\n" + OWN_WORDS, "it cannot replace the table"),
        ("[vocabulary.usage.terms]\nai = {}\n", "it cannot change the vocabulary `usage`"),
        ('[vocabulary.usage]\ntitle = "mine"\n', "it cannot change the vocabulary `usage`"),
        (
            OWN_WORDS + '[[relation]]\nuses = ["train"]\nkind = "within"\nterms = ["usage:tdm"]',
            "it cannot say what `usage:tdm` means",
        ),
        (
            OWN_WORDS + '[[relation]]\nuses = ["reading"]\nkind = "within"\nterms = ["odd:no"]',
            "the table has no use `reading`",
        ),
        (
            OWN_WORDS + '[[relation]]\nuses = ["train"]\nkind = "within"\nterms = ["odd:yes"]',
            "`odd:yes` is not a word",
        ),
    ],
    ids=["TOML", "replaces", "words", "title", "row", "use", "term"],
)
def test_a_vocabulary_leaves_those_of_others_alone(text: str, message: str) -> None:
    """A new word must not turn a use of the table into a word.

    Rows about all other uses would then no longer apply to it.
    """
    before = Vocabulary.shipped()
    with pytest.raises(PolicyError, match=message):
        add_vocabularies(text)
    assert Vocabulary.shipped() is before


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.requirement("EXT-2")
@pytest.mark.slow
@pytest.mark.usefixtures("new_processes")
@pytest.mark.parametrize(
    "command",
    [["crawl", "site"], ["policy", "http://127.0.0.1:1/"], ["dataset", "stats", "x.jsonl"]],
)
def test_commands_end_at_their_start_with_one_line(command: list[str], tmp_path: Path) -> None:
    install(tmp_path, ODD + ', files=(WellKnown("/ai.txt"),))')
    done = run(tmp_path, "-m", "scrapy", *command)
    expected = (
        "comity: the formats `ai-txt` and `odd` both have the file `/ai.txt`: uninstall one\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


@pytest.mark.requirement("EXT-2")
@pytest.mark.usefixtures("new_processes")
@pytest.mark.parametrize(
    "program",
    one_in(3, ["import comity.guard", "import comity.crawler.addon", "import comity.policies"]),
)
def test_programs_end_with_the_name_of_the_format(program: str, tmp_path: Path) -> None:
    install(tmp_path, ODD + ', vocabulary="replaces = true")')
    done = run(tmp_path, "-c", program)
    message = (
        "the vocabulary of the format `odd`: it cannot replace the table: leave out "
        "`replaces`: mend or uninstall it"
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"comity.policies.answers.errors.PolicyError: {message}"


@pytest.mark.slow
@pytest.mark.usefixtures("new_processes")
def test_a_package_that_is_imported_before_comity_is_told_so(tmp_path: Path) -> None:
    install(tmp_path, ODD + ")")
    done = run(tmp_path, "-c", "import odd_format")
    assert done.stderr.splitlines()[-1].endswith(
        "the format `odd` of odd-format cannot be loaded while `odd_format` is imported: "
        "import comity.policies before it"
    )
    assert run(tmp_path, "-c", "import comity.policies, odd_format").returncode == 0


# A format that refuses /no and training. One part after the other raises or returns a wrong value.

FAILING = """
from comity.policies.answers.decision import *
from comity.policies.answers.qualifiers import Qualifiers
from comity.policies.vocabulary.statement import Location, Statement

WORDS = '''
[vocabulary.odd.terms]
train = {}
'''
PART = ""  # that raises
HOW = ""  # or else: "none", "word", "rule", "list"

def part(name, value=None):
    if PART != name:
        return value
    if HOW == "word":
        return Statements((Statement("odd:tarin", Verdict.DENY, "odd.no", Location()),))
    if HOW == "rule":
        return Statements((Statement("odd:train", Verdict.DENY, "odd.on", Location()),))
    if HOW == "state":
        return Statements(state=[])
    if HOW == "none":
        return None
    if HOW == "lazy":
        return Statements(iter(value.statements))
    raise ZeroDivisionError(name)

REASON = Reason(rule="odd.no", source=Source(url="http://site.example/odd.txt"))
PLACE = Location(url="http://site.example/odd.txt")
TRAIN = Statements((Statement("odd:train", Verdict.DENY, "odd.no", PLACE),))

class Uses:
    named_uses = property(lambda self: part("named_uses", ("index",)))
    required_resources = property(lambda self: part("required_resources", ()))
    dated = property(lambda self: part("dated", ()))
    def decide(self, use):
        return part("decide", UseDecision(verdict=Verdict.ALLOW, stated=True, reasons=(REASON,)))
    def limits(self, use):
        return part("limits of a use", ())

class Reading(AgentReading):
    restricts_access = True
    depends_on_request = property(lambda self: part("depends_on_request", False))
    references = property(lambda self: part("references", ()))
    documents = property(lambda self: part("documents", ("http://site.example/odd.xml",)))
    rates = property(lambda self: part("rates"))
    is_same_for_pages = property(lambda self: part("is_same_for_pages", False))
    def access(self, target, sent, facts, now, page=None):
        refusal = Decision(verdict=Verdict.DENY, reasons=(REASON,))
        return part("access", refusal if target == "/no" else None)
    def considered(self, target, facts):
        yield part("considered", REASON)
    def limits(self, target):
        return part("limits")
    def requests(self):
        yield from part("requests", ())
    def conditions(self):
        yield from part("conditions", ())
    def statements(self, resource):
        return part("statements", TRAIN._replace(documents=("http://site.example/odd.xml",)))
    def everywhere(self):
        return part("everywhere", TRAIN.statements)
    def sources(self, targets, capture):
        return part("sources", [Uses()])
    def site_sources(self, purposes):
        return part("site_sources", ())
    def element_rules(self, target, content):
        return part("element_rules")
    def element_rules_everywhere(self):
        return part("element_rules_everywhere")

MORE = FileReference("http://site.example/more.txt", "odd.txt:1")

class Site(SiteReading):
    crawler_names = property(lambda self: part("crawler_names", frozenset(["somebot"])))
    findings = property(lambda self: part("findings", ()))
    sitemaps = property(lambda self: part("sitemaps", ()))
    referred_files = property(lambda self: part("referred_files", (MORE,)))
    def for_agent(self, agent):
        return part("for_agent", Reading())

FORMAT = Format(
    name="odd", version=1, rules={"odd.no": Rule(REFUSES, "Odd", "it says no")}, vocabulary=WORDS,
    files=(WellKnown("/odd.txt", restricts_access=True,
                     rejection=lambda fetched: part("rejection", "")),),
    header_fields=(b"odd",),
    read_site=lambda site: part("read_site", Site()),
    read_headers=lambda headers, response: part("read_headers", Statements()),
    read_document=lambda content, response: part("read_document", Statements()),
    read_documents=lambda urls, fetched, url: part("read_documents", Statements()),
    page_elements=lambda content, agent: part("page_elements"),
    conclude=lambda states: part("conclude", Statements()),
    lifetime=lambda url, fetched: part("lifetime", 1.0),
    replay=lambda name, text: part("replay", []),
)
"""

ASK = """
import json, sys
from comity.policies import Agent, Fetched, Site
from comity.policies.formats import FORMATS, accepted, lifetime
import odd_format

ODD = next(each for each in FORMATS if each.name == "odd")
AGENT = Agent("testbot", uses=("train",), defaults={})
ORIGIN = "http://site.example"

def rules(decision):
    return [decision.verdict.value, *(reason.rule for reason in decision.reasons)]

def ask():
    robots = b"User-agent: *\\nAllow: /\\nContent-Usage: train-ai=y\\n"
    site = Site.from_files(ORIGIN, {"/robots.txt": robots, "/odd.txt": b""})
    headers = [(b"Odd", b"1"), (b"Content-Type", b"text/html")]
    page = site.page(AGENT, ORIGIN + "/yes", headers=headers, body=b"<p>")
    return {
        "no": rules(site.access(AGENT, ORIGIN + "/no")),
        "yes": rules(site.access(AGENT, ORIGIN + "/yes")),
        "train": rules(page.uses["train"]),
        "tag": page.permissions["uses"]["train"]["verdict"],
        "headers": site.refused_by_headers(AGENT, ORIGIN + "/yes", [(b"odd", b"1")]) is not None,
        "rest": repr([
            site.considered(AGENT, ORIGIN + "/yes"), site.limits(AGENT, ORIGIN + "/yes"),
            site.rates(AGENT), site.requests(AGENT),
            list(site.conditions(AGENT)),
            site.findings, site.sitemaps, site.references(AGENT), site.licenses(AGENT),
            site.unusable(AGENT), list(page.uses),
            lifetime(ORIGIN + "/odd.txt", Fetched(status=200)), ODD.replay("odd", "1"),
            page.required_resources, page.dated,
            site.statements_key(AGENT, ORIGIN + "/yes", None),
        ]),
        "file": accepted(ORIGIN + "/odd.txt", Fetched(status=200, body=b"1")).error,
        "names": sorted(site.crawler_names), "referred": len(site.referred_files),
    }

found = {}
for line in sys.stdin:
    odd_format.PART, odd_format.HOW = json.loads(line)
    found[f"{odd_format.PART}:{odd_format.HOW}"] = ask()
print(json.dumps(found))
"""

ACCESS = (
    *("read_site", "for_agent", "crawler_names", "referred_files"),
    *("depends_on_request", "references", "documents", "rates", "is_same_for_pages", "access"),
)
USES = (
    *(
        "statements",
        "sources",
        "named_uses",
        "required_resources",
        "dated",
        "decide",
        "limits of a use",
        "element_rules",
    ),
    *("read_headers", "read_document", "read_documents", "page_elements", "conclude"),
)
NEITHER = (
    *(
        "considered",
        "limits",
        "requests",
        "conditions",
        "everywhere",
        "site_sources",
        "element_rules_everywhere",
        "findings",
        "sitemaps",
    ),
    *("lifetime", "replay", "rejection"),
)
UNSOUND = {
    part: hows
    for hows, parts in {
        ("none", "word", "rule"): ("read_headers", "read_document", "read_documents", "conclude"),
        ("none", "word", "rule", "state"): ("statements",),
    }.items()
    for part in parts
}


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Any]]:
    """Return part and way of failing -> the answers of the site."""
    folder = tmp_path_factory.mktemp("failing")
    install(folder, FAILING)
    asked = [("", ""), ("statements", "lazy"), *((part, "") for part in (*ACCESS, *USES, *NEITHER))]
    asked += [(part, how) for part, hows in UNSOUND.items() for how in hows]
    path = os.pathsep.join([str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ASK],
        env={**os.environ, "PYTHONPATH": path, "PYTHONSTARTUP": ""},
        input="".join(json.dumps(each) + "\n" for each in asked),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_format_that_is_well_refuses_what_it_says(
    failures: Mapping[str, Mapping[str, Any]],
) -> None:
    for case in (":", "statements:lazy"):
        well = failures[case]
        assert (well["no"], well["yes"][0], well["train"][:2], well["headers"]) == (
            ["deny", "odd.no"],
            "allow",
            ["deny", "odd.no"],
            False,
        )
        assert (well["names"], well["referred"], well["file"]) == (["somebot"], 1, "")
        assert "comity.format" not in json.dumps(well)


@pytest.mark.requirement("EXT-2")
@pytest.mark.parametrize("part", ACCESS)
def test_a_part_that_tells_of_requests_and_raises_refuses_all(
    part: str, failures: Mapping[str, Mapping[str, Any]]
) -> None:
    failing = failures[f"{part}:"]
    assert failing["no"] == failing["yes"] == ["deny", "comity.format"]
    assert (failing["train"][0], failing["tag"]) == ("deny", "deny")


@pytest.mark.requirement("EXT-2")
@pytest.mark.parametrize(
    ("part", "how"),
    one_in(
        3,
        [
            *((part, "") for part in USES),
            *((part, how) for part, hows in UNSOUND.items() for how in hows),
        ],
    ),
)
def test_a_part_that_tells_of_uses_and_raises_refuses_all(
    part: str, how: str, failures: Mapping[str, Mapping[str, Any]]
) -> None:
    failing = failures[f"{part}:{how}"]
    assert failing["no"] == ["deny", "odd.no"]
    assert failing["train"][0] == failing["tag"] == "deny"
    assert "comity.format" in failing["train"]
    assert failing["headers"] is (part == "read_headers")


@pytest.mark.parametrize("part", one_in(2, NEITHER))
def test_a_part_that_permits_nothing_and_raises_changes_no_refusal(
    part: str, failures: Mapping[str, Mapping[str, Any]]
) -> None:
    failing, well = failures[f"{part}:"], failures[":"]
    assert [failing[of] for of in ("no", "yes", "train", "tag")] == [
        well[of] for of in ("no", "yes", "train", "tag")
    ]
    assert failing["file"] == (
        "format odd: ZeroDivisionError: rejection" if part == "rejection" else ""
    )


class SourcesAlone(AgentReading):
    """It has refusals for pages, but does not tell that its pages differ."""

    def sources(self, targets: Iterable[str], capture: Capture) -> Sequence[PageSource]:
        return [NoUse()]


class NoUse(RefusingSource):
    required_resources = dated = ()

    def __init__(self) -> None:
        super().__init__(
            (Reason(rule="sound.no", source=Source(url="http://site.example/sound.txt")),)
        )


class SourcesAloneSite(SiteReading):
    def for_agent(self, agent: Agent) -> SourcesAlone:
        return SourcesAlone()


def test_what_a_reading_says_of_pages_counts_whatever_else_it_says_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = SOUND._replace(read_site=lambda site: SourcesAloneSite())
    monkeypatch.setitem(RULES, "sound.no", SOUND.rules["sound.no"])
    agent = Agent("testbot", uses=("train",), defaults={"train": Verdict.ALLOW})
    for format_ in (sound, distrusted(sound)):
        monkeypatch.setattr("comity.policies.site.FORMATS", (*FORMATS, format_))
        page = Site.from_files("http://site.example", {}).page(agent, "http://site.example/")
        assert [reason.rule for reason in page.uses["train"].reasons] == ["sound.no"]


def test_a_format_that_fails_to_help_says_so_and_the_others_help_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> Any:
        raise ValueError("odd")

    authoring = Authoring(
        check_site=fails,
        check_document=fails,
        kinds=(FileKind("odd.odd", fails, fails),),
        fixes={"robots.misspelled": fails},
    )
    helping = distrusted(SOUND._replace(authoring=authoring)).authoring
    assert helping.check_site
    assert helping.check_document
    site = SiteFiles("https://site.example", {})
    found = [
        *helping.check_site(site),
        *helping.check_document(Content((), b""), "https://site.example/"),
    ]
    found += helping.kinds[0].findings(b"", "https://site.example/odd.odd")
    assert [(each.rule, each.message) for each in found] == [
        ("comity.format", "format sound: ValueError: odd")
    ] * 3
    assert not helping.kinds[0].is_meant("odd.odd", b"")
    assert helping.fixes["robots.misspelled"](Draft("", b""), found[0]) is None
