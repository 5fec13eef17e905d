"""Writes down what comity decides of generated sites, pages, requests and records, so that two versions of it can be compared.

    python tests/equality/record.py OUT [--cases N] [--seed S] [--processes P] [--tree DIR]
    python tests/equality/record.py --show NUMBER

OUT gets a line of JSON for each case, with a digest of its inputs and its outcome; `OUT.gz` is compressed. The same seed gives
the same octets in every process, at any time. `compare.py` shows where two such files differ.

Only public names are used, so that the same script runs on a version whose modules have moved: those of comity.policies and
comity.guard, and the commands of Scrapy. What has no public name is looked for by UNLISTED."""

# ruff: noqa: T201  # a command

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import importlib
import io
import json
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import IO, Any

import time_machine

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.equality import generate, grammar  # noqa: E402

Json = dict[str, Any]

# What has no public name: by which names it is looked for in the sources, wherever it stands. The first that is there counts.
UNLISTED = {
    "Session": ("Session",),  # of a request: human_initiated, carries, started_at
    "Vocabulary": ("Vocabulary",),  # Vocabulary.shipped().joined(text of TOML)
    "PolicyStore": ("PolicyStore",),  # PolicyStore(path).save(origin, files)
    "PolicyFile": ("PolicyFile", "PolicyCopy"),  # what the store keeps: due, copy, failure
    "no_page": ("no_page",),  # the tag of what came from no page: (agent, why)
    "redacted_fields": (
        "redacted_fields",
    ),  # an item without what is refused: (rules, fields, selectors, uses, names=)
    "item_id": ("item_id",),  # of an item in a file of tags
    "combined": ("combined", "join_tags"),  # the tag of what came from two pages: (agent, tag, tag)
}
# Attributes of values that have no public class. The first that is there counts.
RATES = {
    "crawl_delay": ("crawl_delay",),
    "request_rates": ("request_rates",),
    "visit_time": ("visit_time", "visit_times"),
}
LIMITS = {
    "key": ("key",),
    "windows": ("windows",),
    "concurrent": ("concurrent",),
    "unreadable": ("unreadable",),
}
PAGE = {"wanted": ("required_resources", "wanted")}
REDACTED = {"changed": ("changed",), "gone": ("removed", "gone")}
ELEMENT = {
    "selector": ("selector",),
    "type": ("type",),
    "is_whole": ("is_whole",),
    "reasons": ("reasons",),
    "urls": ("urls",),
}

RARE = 10  # cases: a rule that is in fewer should be made likelier in generate.py or grammar.py
NOW = datetime.fromisoformat("2026-11-22T12:00:00+00:00")
QUALIFIERS = (
    "until",
    "until_recrawled",
    "max_chars",
    "max_words",
    "prohibited_modifications",
    "prohibited_contexts",
    "required_contexts",
    "must_use",
    "must_include",
)


class Surface:
    """What is used of comity, of the tree that is recorded."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        sys.path.insert(0, str(tree))
        self.policies = importlib.import_module("comity.policies")
        self.guard = importlib.import_module("comity.guard")
        if not Path(self.policies.__file__ or "").is_relative_to(tree):
            raise SystemExit(f"{self.policies.__file__} is not in {tree}")
        self._known: dict[str, Any] = {}

    def check(self) -> None:
        """SystemExit where UNLISTED does not fit the tree: a worker that ended by it would be started again for ever."""
        for name in UNLISTED:
            self.unlisted(name)

    def unlisted(self, name: str) -> Any:
        """SystemExit where none of the alternatives is in the sources, or one is there twice."""
        if name not in self._known:
            self._known[name] = self._looked_up(name)
        return self._known[name]

    def _looked_up(self, name: str) -> Any:
        sources = [
            (path, path.read_text("utf-8"))
            for path in sorted((self._tree / "comity").rglob("*.py"))
        ]
        for alternative in UNLISTED[name]:
            defining = re.compile(rf"^(?:class|def) {alternative}\b", re.MULTILINE)
            places = [path for path, text in sources if defining.search(text)]
            if len(places) > 1:
                raise SystemExit(
                    f"`{alternative}` is defined in {' and '.join(map(str, places))}: name another in UNLISTED"
                )
            if places:
                module = ".".join(
                    places[0].relative_to(self._tree).with_suffix("").parts
                ).removesuffix(".__init__")
                return getattr(importlib.import_module(module), alternative)
        raise SystemExit(
            f"none of {', '.join(UNLISTED[name])} is in {self._tree}: add the name that it has now to UNLISTED"
        )


# Values of comity as JSON


def plain(value: Any) -> Any:
    """Sets in order, moments as text, verdicts as their value, and what a public class holds by name."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(plain, value))
    if isinstance(value, list | tuple):
        return list(map(plain, value))
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__name__ == "Verdict":
        return value.value
    return _PLAIN[type(value).__name__](value)


def attributes(value: Any, names: Iterable[str]) -> Json:
    """Those that are not empty."""
    made = {name: plain(getattr(value, name)) for name in names}
    return {name: one for name, one in made.items() if one not in (None, "", [], False)}


def unlisted(value: Any, names: Mapping[str, Sequence[str]]) -> Json:
    """AttributeError where one has none of its alternatives."""
    made = {}
    for name, alternatives in names.items():
        known = next((one for one in alternatives if hasattr(value, one)), alternatives[0])
        made[name] = plain(getattr(value, known))
    return made


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "Source": lambda source: attributes(
        source, ("url", "part", "line", "text", "sha256", "fetched_at")
    ),
    "Reason": lambda reason: attributes(reason, ("rule", "spec", "source")),
    "Decision": lambda decision: attributes(decision, ("verdict", "reasons", "not_before")),
    "UseDecision": lambda use: (
        {"stated": use.stated} | attributes(use, ("verdict", "reasons", *QUALIFIERS))
    ),
    "Finding": lambda finding: attributes(finding, ("rule", "message", "url", "line", "column")),
    "ActionRequest": lambda request: (
        {"arranged": request.arranged} | attributes(request, ("action", "url", "reason"))
    ),
    "Resource": lambda resource: (
        attributes(resource, ("role", "uri", "content")) | {"extract": str(resource.extract or "")}
    ),
    "VisitTime": lambda visit: attributes(visit, ("start", "end", "line", "text")),
}


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def octets(text: str) -> bytes:
    return text.encode("latin-1")


class Recorder:
    """The outcomes of cases."""

    def __init__(self, tree: Path) -> None:
        self._comity = Surface(tree)
        self._policies = self._comity.policies

    def outcome(self, inputs: Json) -> Json:
        """Of a case by what `generate.inputs` made for it."""
        record: Callable[[Json], Json] = getattr(self, f"_{inputs['kind']}")
        return record(inputs)

    def _either(self, call: Callable[[], Any]) -> Any:
        """What comes back, or the mistake that its operator is told of."""
        try:
            return plain(call())
        except (self._policies.PolicyError, ValueError) as error:
            return {"raises": type(error).__name__, "message": str(error)}

    # What is made of inputs

    def _fetched(self, file: Json) -> Any:
        made: Json = {
            name: file[name] for name in ("status", "url", "error", "oversized") if name in file
        }
        made |= {
            name: moment(file[name]) for name in ("fetched_at", "unreachable_since") if name in file
        }
        headers = tuple((octets(name), octets(value)) for name, value in file.get("headers", ()))
        return self._policies.Fetched(headers=headers, body=octets(file.get("body", "")), **made)

    def _site_of(self, files: Json, origin: str = grammar.ORIGIN) -> Any:
        return self._policies.Site.from_files(
            origin, {path: self._fetched(file) for path, file in files.items()}
        )

    def _agent(self, agent: Json) -> Any:
        made = dict(agent)
        for name in ("uses", "purposes", "content_usage"):
            if name in made:
                made[name] = tuple(made[name])
        made["defaults"] = {
            use: self._policies.Verdict(verdict)
            for use, verdict in made.get("defaults", {}).items()
        }
        if "vocabulary" in made:
            made["vocabulary"] = self._vocabulary(made["vocabulary"])
        made["arrangements"] = tuple(
            self._policies.Arrangement(
                one["host"],
                features=frozenset(one["features"]),
                uses=frozenset(one["uses"]),
                reference=one["reference"],
            )
            for one in made.get("arrangements", ())
        )
        return self._policies.Agent(made.pop("token"), **made)

    @cache  # noqa: B019  # a recorder lives as long as its process
    def _vocabulary(self, text: str) -> Any:
        return self._comity.unlisted("Vocabulary").shipped().joined(text)

    def _session(self, session: Json) -> Any:
        return self._comity.unlisted("Session")(
            human_initiated=session["human_initiated"],
            carries=frozenset(session["carries"]),
            started_at=moment(session["started_at"]),
        )

    def _request(self, request: Json) -> Json:
        made = dict(request, now=moment(request["now"]))
        if isinstance(made.get("kind"), list):
            made["kind"] = tuple(made["kind"])
        for name in ("automations", "purposes"):
            if name in made:
                made[name] = tuple(made[name])
        if "session" in made:
            made["session"] = self._session(made["session"])
        return made

    # Kinds of cases

    def _site(self, inputs: Json) -> Json:
        site = self._site_of(inputs["files"])
        agents = []
        for one in inputs["agents"]:
            agent = self._agent(one)
            fields = [(octets(name), octets(value)) for name, value in inputs["headers"]]
            asked = []
            for url, request in inputs["requests"]:
                asked.append(
                    {
                        "access": plain(site.access(agent, url, **self._request(request))),
                        "considered": plain(site.considered(agent, url)),
                        "limits": [unlisted(limits, LIMITS) for limits in site.limits(agent, url)],
                        "refused_by_headers": plain(
                            site.refused_by_headers(agent, url, fields, moment(request["now"]))
                        ),
                    }
                )
            rates = site.rates(agent)
            agents.append(
                {
                    "asked": asked,
                    "rates": rates and unlisted(rates, RATES),
                    "requests": plain(site.requests(agent)),
                    "references": plain(site.references(agent)),
                    "licenses": plain(site.licenses(agent)),
                    "unusable": plain(site.unusable(agent)),
                    "unusable_for": plain(site.unusable(agent, ("archiving",))),
                }
            )
        return {
            "agents": agents,
            "findings": plain(site.findings),
            "sitemaps": plain(site.sitemaps),
            "policies": plain(site.policies),
            "crawler_names": plain(site.crawler_names),
        }

    def _page_of(self, site: Any, agent: Any, url: str, inputs: Json) -> Any:
        response, origin = inputs["response"], grammar.ORIGIN
        body = response.get("body")
        return site.page(
            agent,
            url,
            status=response["status"],
            headers=[(octets(name), octets(value)) for name, value in response["headers"]],
            body=None if body is None else octets(body),
            is_read=response.get("is_read", True),
            now=moment(inputs["now"]),
            first_seen={use: moment(text) for use, text in inputs.get("first_seen", {}).items()},
            resources={
                origin + path: self._fetched(file)
                for path, file in inputs.get("resources", {}).items()
            },
        )

    def _page(self, inputs: Json) -> Json:
        site, agent = self._site_of(inputs["files"]), self._agent(inputs["agent"])
        page = self._page_of(site, agent, inputs["url"], inputs)
        made = self._of_page(page, inputs)
        if inputs["other_url"]:
            other = self._page_of(site, agent, inputs["other_url"], inputs)
            made["asked_as"] = self._of_page(page.asked_as(other), inputs)
            tags = [
                other.permissions,
                self._comity.unlisted("no_page")(agent, "the item came from no page"),
            ]
            made["combined"] = [
                plain(self._comity.unlisted("combined")(agent, page.permissions, tag))
                for tag in tags
            ]
        return made

    def _of_page(self, page: Any, inputs: Json) -> Json:
        item, (action, lang) = inputs["item"], inputs["actions"]
        asked = dict.fromkeys((*page.uses, *grammar.USES))
        return {
            "uses": {use: plain(page.uses[use]) for use in asked},
            "embedded": {use: page.embedded[use].verdict.value for use in asked},
            "stated": list(page.uses),
            "follow": plain(page.follow),
            **unlisted(page, PAGE),
            "dated": plain(page.dated),
            "elements": [unlisted(element, ELEMENT) for element in page.elements],
            "permissions": plain(page.permissions),
            "tag_of": plain(page.tag_of(item["fields"], item["declared"], names=item["fields"])),
            "item": self._redacted(page, inputs),
            "redacted": [
                plain(page.redacted(uses)) for uses in ((), inputs["uses"], inputs["agent"]["uses"])
            ],
            "findings": plain(page.findings),
            "prompt": self._either(lambda: self._policies.instructions(page, action, lang)),
            "snippets": [
                self._policies.snippet(generate.TEXTS[2], page.uses[use])
                for use in ("present-snippet", "index")
            ],
        }

    def _redacted(self, page: Any, inputs: Json) -> Json | None:
        """What becomes of an item where elements are refused."""
        if not page.element_rules:
            return None
        item, uses = inputs["item"], page.refusable(inputs["uses"] or inputs["agent"]["uses"])
        redact = self._comity.unlisted("redacted_fields")
        left = redact(
            page.element_rules, item["fields"], item["declared"], uses, names=item["fields"]
        )
        return unlisted(left, REDACTED) | {"tag": plain(page.tag_with(left.traced))}

    def _guard(self, inputs: Json) -> Json:
        files = {path: octets(body) for path, body in inputs["files"].items()}
        now = 0.0
        options = dict(inputs["options"], clock=lambda: now)
        if inputs["session"]:
            session = self._session(
                {
                    "human_initiated": True,
                    "carries": ["cookie"],
                    "started_at": "2026-11-22T11:30:00+00:00",
                }
            )
            options["session"] = lambda _: session
        folder = None
        if inputs["is_uncounted"]:
            folder = tempfile.mkdtemp()
            options["counts"] = self._comity.guard.SharedClients(Path(folder) / "counts")
            shutil.rmtree(folder)
        try:
            guard = self._comity.guard.Guard(grammar.ORIGIN, files, **options)
        except self._policies.PolicyError as error:
            return {"raises": str(error)}
        answers = []
        for request in inputs["requests"]:
            now = request["at"]
            answer = guard.check(
                self._comity.guard.Incoming(
                    request["method"], request["target"], request["fields"], request["peer"]
                )
            )
            if isinstance(answer, self._comity.guard.Pass):
                answers.append({"passes": answer.is_counted})
                if request["ends"]:
                    answer.end()
            else:
                body = answer.body.decode()
                is_problem = body.startswith("{") and answer.status >= 400
                answers.append(
                    {
                        "status": answer.status,
                        "headers": plain(answer.headers),
                        "body": json.loads(body)
                        if is_problem
                        else hashlib.sha256(answer.body).hexdigest(),
                        "close_code": answer.close_code,
                    }
                )
        return {
            "answers": answers,
            "findings": plain(guard.findings),
            "passed": dict(sorted(guard.passed.items())),
            "refused": dict(sorted(guard.refused.items())),
        }

    def _xml(self, inputs: Json) -> Json:
        to_xml, from_xml = self._policies.ai_txt_to_xml, self._policies.ai_txt_from_xml
        text, document = octets(inputs["text"]), octets(inputs["document"])
        return {
            "to_xml": self._either(lambda: to_xml(text, cut=inputs["cut"])),
            "and_back": self._either(lambda: from_xml(to_xml(text, cut=inputs["cut"]))),
            "from_xml": self._either(lambda: from_xml(document)),
        }

    def _policy(self, inputs: Json) -> Json:
        with folder():
            for path, body in inputs["files"].items():
                file = Path("site") / path[1:]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(octets(body))
                os.utime(file, (NOW.timestamp(), NOW.timestamp()))
            Path("site").mkdir(exist_ok=True)
            words = [
                "policy",
                inputs["url"],
                "--offline",
                "site",
                "--agent",
                inputs["agent"],
                *inputs["arguments"],
            ]
            return run(words)

    # Datasets

    def _dataset(self, inputs: Json) -> Json:
        agent = self._agent(inputs["agent"])
        sites = {
            host: self._site_of(files, _origin(host)) for host, files in inputs["sites"].items()
        }
        records = [
            record
            for one in inputs["records"]
            if (record := self._record(one, agent, sites)) is not None
        ]
        lines = [json.dumps(record) for record in records]
        if inputs["tags"]:
            lines = [json.dumps(self._elsewhere(record, inputs["tags"])) for record in records]
        if inputs["broken"]:
            lines.insert(1, '{"url": "https://example.com/", ')
        with folder():
            rows = (self._row(record) for record in records if "permissions" in record)
            Path("tags.jsonl").write_text("".join(f"{row}\n" for row in rows), "utf-8")
            Path("in.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
            Path("kept.jsonl").write_bytes(Path("in.jsonl").read_bytes())
            self._store(inputs)
            out, uses = f"out.{inputs['form']}", ",".join(inputs["uses"])
            tags = ["--tag", inputs["tags"]] if inputs["tags"] else []
            export = [
                "dataset",
                "export",
                "in.jsonl",
                "--for",
                uses,
                "-o",
                out,
                "--workers",
                "1",
                *tags,
            ]
            if inputs["defaults"]:
                export += ["--default", inputs["defaults"]]
            listed = ["--json", "--list", "listed.jsonl", "--workers", "1", "--store", "store"]
            verify = ["dataset", "verify", "in.jsonl", *listed, *tags]
            if inputs["verify_for"]:
                verify += ["--for", uses]
            done = {
                "export": run(export),
                "stats": run(["dataset", "stats", "in.jsonl", "--json", "--workers", "1", *tags]),
                "verify": run([*verify, "-s", f"COMITY_AGENT={inputs['agent']['token']}"]),
                "expire": run(
                    ["dataset", "expire", "kept.jsonl", "--store", "store", "--workers", "1", *tags]
                ),
                "again": run(
                    [
                        "dataset",
                        "export",
                        out,
                        "--for",
                        "index",
                        "-o",
                        f"again-{out}",
                        "--workers",
                        "1",
                    ]
                ),
                "verify_again": run(
                    ["dataset", "verify", out, "--json", "--workers", "1", "--store", "store"]
                ),
                "expire_again": run(["dataset", "expire", out, "--dry-run", "--workers", "1"]),
            }
            return {"records": records, **done, "files": dict(_written(out))}

    def _record(self, one: Json, agent: Any, sites: Mapping[str, Any]) -> Json | None:
        if "record" in one:
            made: Json = one["record"]
            return made
        site = sites.get(one["host"])
        if site is None:
            return None
        url = _origin(one["host"]) + one["path"]
        page = self._page_of(
            site, agent, url, {"response": one["response"], "now": one["fetched_at"]}
        )
        fields = one["item"]["fields"]
        tag = page.tag_of(fields, one["item"]["declared"], names=fields)
        return {"url": url, "fetched_at": one["fetched_at"], **fields, "permissions": plain(tag)}

    def _elsewhere(self, record: Json, place: str) -> Json:
        """A record whose tag stands in another field, or in a file beside it."""
        made = {name: value for name, value in record.items() if name != "permissions"}
        return (
            made
            if ":" in place or "permissions" not in record
            else made | {place: record["permissions"]}
        )

    def _row(self, record: Json) -> str:
        item = {name: value for name, value in record.items() if name != "permissions"}
        row = {
            "id": self._comity.unlisted("item_id")(item),
            "url": record["url"],
            "permissions": record["permissions"],
        }
        return json.dumps(row, separators=(",", ":"))

    def _store(self, inputs: Json) -> None:
        """What the sites say today, in a policy store."""
        keep = self._comity.unlisted("PolicyFile")
        store = self._comity.unlisted("PolicyStore")(Path("store"))
        for host, files in (inputs["sites"] | inputs["today"]).items():
            saved = {}
            for path in generate.FILES:
                fetched = self._fetched(files.get(path, {"status": 404}))
                is_failure = fetched.status == 0 or fetched.status >= 500
                due = NOW.timestamp() + 3600
                saved[path] = (
                    keep(due=due, failure=fetched, failing_since=NOW)
                    if is_failure
                    else keep(due=due, copy=fetched)
                )
            store.save(_origin(host), saved)
        for url in inputs["taken_down"]:
            store.requests_action(url, "take-down", "0" * 64, NOW)
        store.close()


def _origin(host: str) -> str:
    return f"https://{host}"


def _written(out: str) -> Iterator[tuple[str, Any]]:
    """Name -> content of each file that the commands have left, lines of JSON as such."""
    for path in sorted(Path().iterdir()):
        if path.name in ("in.jsonl", "tags.jsonl", "store") or path.name.startswith("store-"):
            continue
        if path.suffix == ".parquet":
            from pyarrow import parquet

            table = parquet.read_table(path)
            yield (
                path.name,
                {"columns": str(table.schema.remove_metadata()), "rows": plain(table.to_pylist())},
            )
        elif path.suffix == ".jsonl":
            yield (
                path.name,
                [json.loads(line) for line in path.read_text("utf-8").split("\n") if line],
            )
        else:
            yield path.name, _manifest(path.read_text("utf-8"))


def _manifest(text: str) -> Any:
    try:
        manifest = json.loads(text)
    except ValueError:
        return text
    for file in manifest.get("distribution", ()):
        if file.get("name", "").endswith("parquet") or str(file.get("contentUrl", "")).endswith(
            ".parquet"
        ):
            file.pop("sha256", None)  # its octets depend on the version of pyarrow
            file.pop("contentSize", None)
    return manifest


@contextlib.contextmanager
def folder() -> Iterator[None]:
    """A new one to work in."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as made:
        os.chdir(made)
        try:
            yield
        finally:
            os.chdir(before)


def run(words: Sequence[str]) -> Json:
    """What `scrapy WORDS` prints, and its exit status."""
    from scrapy.cmdline import execute
    from scrapy.settings import Settings

    printed = [
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
    ]
    status: Any = 0
    with contextlib.redirect_stdout(printed[0]), contextlib.redirect_stderr(printed[1]):
        try:
            execute(["scrapy", *words], Settings({"COMITY_STORE": "store"}))
        except SystemExit as exit_:
            status = exit_.code
    out, errors = (one.buffer.getvalue().decode() for one in printed)
    try:
        shown = json.loads(out)
    except ValueError:
        shown = out.split("\n")
    return {"status": status, "out": shown, "errors": errors.split("\n")}


# Cases

_recorder: Recorder | None = None
_seed = 0


def _begin(tree: Path, seed: int) -> None:
    global _recorder, _seed  # of a process
    os.environ.pop("SCRAPY_SETTINGS_MODULE", None)
    os.environ |= {"COLUMNS": "200", "TZ": "UTC", "NO_COLOR": "1"}
    time.tzset()
    time_machine.travel(NOW, tick=False).start()
    _recorder, _seed = Recorder(tree), seed


def line(number: int) -> str:
    """One case."""
    assert _recorder
    inputs = generate.inputs(_seed, number)
    digest = hashlib.sha256(generate.as_json(inputs).encode()).hexdigest()[:16]
    try:
        outcome = _recorder.outcome(inputs)
    except Exception as error:  # a mistake of comity, or of this script: the run ends with status 1
        outcome = {"failed": f"{type(error).__name__}: {error}"}
    case = {"case": number, "kind": inputs["kind"], "inputs": digest, "outcome": outcome}
    return json.dumps(case, separators=(",", ":"))


def lines(tree: Path, seed: int, cases: int, processes: int) -> Iterator[str]:
    """The cases in their order, whichever process makes them."""
    os.environ.setdefault(
        "PYTHONHASHSEED", "0"
    )  # of the new processes; set it to look for what depends on the order of sets
    with multiprocessing.get_context("spawn").Pool(processes, _begin, (tree, seed)) as pool:
        yield from pool.imap(line, range(cases), chunksize=25)


def rule_ids(tree: Path) -> list[str]:
    """All that docs/rules.md lists."""
    text = (tree / "docs" / "rules.md").read_text("utf-8")
    return sorted(set(re.findall(r"^\| \[?`([a-z-]+\.[a-z-]+)`", text, re.MULTILINE)))


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    with path.open("wb") as file:
        if path.suffix == ".gz":
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed:
                yield compressed  # type: ignore[misc]
        else:
            yield file


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", nargs="?", type=Path, metavar="OUT")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--tree",
        type=Path,
        default=HERE.parent.parent,
        help="where the folder comity is (default: here)",
    )
    parser.add_argument(
        "--show", type=int, metavar="NUMBER", help="print the inputs and the outcome of one case"
    )
    given = parser.parse_args()
    tree = given.tree.resolve()
    if given.show is not None:
        _begin(tree, given.seed)
        print(json.dumps(generate.inputs(given.seed, given.show), indent=1))
        print(json.dumps(json.loads(line(given.show)), indent=1))
        return 0
    if not given.out:
        parser.error("say where the cases are to be written")
    Surface(tree).check()
    known = rule_ids(tree)
    seen: Counter[str] = Counter()
    failed = []
    began = time.monotonic()
    word = re.compile(r"\b[a-z]+(?:-[a-z]+)*\.[a-z]+(?:-[a-z]+)*")
    with opened(given.out) as file:
        for number, text in enumerate(lines(tree, given.seed, given.cases, given.processes)):
            file.write(text.encode("ascii") + b"\n")
            seen.update(set(word.findall(text)).intersection(known))
            failed += [number] if '"outcome":{"failed":' in text[:120] else []
    rare = ", ".join(
        f"{rule} {seen[rule]}"
        for rule in sorted(known, key=seen.__getitem__)
        if 0 < seen[rule] < RARE
    )
    print(
        f"{given.cases} cases in {time.monotonic() - began:.0f} s; {len([*filter(seen.get, known)])} of {len(known)} rules"
    )
    print(f"In fewer than {RARE} cases: {rare or 'none'}")
    print(f"In no case: {', '.join(rule for rule in known if not seen[rule]) or 'none'}")
    if failed:
        print(f"{len(failed)} cases failed, e.g. --show {failed[0]}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
