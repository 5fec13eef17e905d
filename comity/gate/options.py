"""Read the COMITY_* settings once, and check them (docs/settings.md)."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from configparser import ConfigParser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

from platformdirs import user_data_path

from comity.dataset.tags.setting import TagSetting
from comity.gate.fetching.options import ClientOptions
from comity.gate.request.sessions import DeclaredSession, declared_session
from comity.gate.settings import DEFAULT_AGENT, Settings
from comity.policies import Agent, Arrangement, PolicyError, Verdict
from comity.policies.agent import CONTENT_USAGE, FEATURES
from comity.policies.answers.request import PURPOSE_HEADER
from comity.policies.syntax.printable import MAX_SHOWN, printable
from comity.policies.syntax.urls import origin_of
from comity.policies.vocabulary.table import Vocabulary

ASYNCIO_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

DEFAULTS: dict[str, Any] = {
    "COMITY_AGENT": DEFAULT_AGENT,
    "COMITY_PURPOSES": (),
    "COMITY_USES": (),
    "COMITY_DEFAULTS": {},
    "COMITY_VOCABULARY": "",
    "COMITY_ARRANGEMENTS": {},
    "COMITY_SESSIONS": {},
    "COMITY_PURPOSE_HEADER": PURPOSE_HEADER,
    "COMITY_KEY_HEADER": "X-API-Key",
    "COMITY_CONTENT_USAGE": CONTENT_USAGE,
    "COMITY_AUTOMATION_REQUIRED": False,
    "COMITY_UNREACHABLE_USES": "deny",
    "COMITY_SKIP_UNUSABLE": True,
    "COMITY_DROP_UNUSABLE": True,
    "COMITY_REL_NOFOLLOW": False,
    "COMITY_ELEMENTS": "tag",
    "COMITY_TAG": "permissions",
    "COMITY_BROWSER": "all",
    "COMITY_PROGRESS": "summary",
    "COMITY_REPORT": "",
    "COMITY_METRICS": "",
    "COMITY_GC": True,
    "COMITY_STORE": "",
    "COMITY_STATE": "",
    "COMITY_CRAWL": "",
    "COMITY_MAX_WAITING": 0,
    "COMITY_AGAIN_AFTER": 0,
    "COMITY_WORKER_TIMEOUT": 10,
    "COMITY_PART_SECONDS": 60,
    "COMITY_POLICY_TIMEOUT": 15,
    "COMITY_PROXY": "",
    "COMITY_INNER": "deny",
    "COMITY_MIN_DELAY": 1,
    "COMITY_MAX_DELAY": 300,
}


INNER = ("allow", "deny")
REPORT_ENDINGS = (".html", ".htm", ".json")
MAX_PORT = 65535
# "line": progress during the crawl and at its end; "summary": at its end only; "off": none.
PROGRESS = ("line", "summary", "off")
# The answer about uses that a policy file could refuse, while the file cannot be fetched.
UNREACHABLE_USES = ("deny", "default")
# "all": all requests of a browser are judged. "documents": only documents are judged, and the
# decision about a document applies to the files that its display needs, such as images.
BROWSER = ("all", "documents")
# Refused elements: "tag": the tag names them; "redact": they are cut out of items; "strip": they
# are removed from the response.
ELEMENTS = ("tag", "redact", "strip")

# Terms of ACAP 1.0 section 2.5 and of later vocabularies. In the settings, `:` and `,` are
# separators.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
PURPOSE = re.compile(r"[A-Za-z0-9][!-~]*")  # ACAP 1.0 section-2.3.3: a name or a URI
NUMBER = re.compile(r"[0-9]{1,18}")
FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 section-5.6.2

HOST = re.compile(r"([^\s/\\?#@*:\[\]]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")


class SettingsError(SystemExit, PolicyError):
    """The settings are invalid, so the crawl must not start.

    If the error is not caught, the program ends with status 1 and prints one line, no traceback."""


def stop(message: str, *, program: str = "comity") -> NoReturn:
    """Raise SettingsError with the message.

    `program`: the name of the program, with which the message begins."""
    with suppress(RuntimeError):  # no event loop is running
        if task := asyncio.current_task():
            task.add_done_callback(_retrieve_exception)
    raise SettingsError(f"{program}: {message}")


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Mark the exception of the task as seen.

    Else asyncio prints a traceback too, although the exception has already ended the program."""
    if not task.cancelled():
        task.exception()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of one crawl.

    Attributes:
        agent: The crawler, with its purposes, uses and arrangements.
        sessions: The sessions that hosts get.
        purpose_header: The header field that tells servers the purposes; "": none does.
        skip_unusable: Do not fetch pages that are known to refuse every declared use.
        drop_unusable: Drop an item if its policies permit none of the declared uses.
        rel_nofollow: Drop links with rel=nofollow.
        elements: A word of ELEMENTS: the treatment of elements that a page refuses for one of the
            declared uses.
        tag: Where the tag of an item goes.
        browser: A word of BROWSER: the requests of a browser that are judged.
        progress: A word of PROGRESS: the output about the progress of the crawl.
        report: Path of the report: JSON if it ends in .json, else an HTML page; "": no report.
        metrics: Port for Prometheus, on this machine only. 0 means any free port, None no metrics.
        sets_gc: Tune the garbage collector during crawls.
        inner: A word of INNER: "allow": sites may lead to servers at inner addresses that the
            operator has not asked for.
        store: Path of the store for policy files.
        state: URL of the state that several workers share instead of the store and JOBDIR; "": no
            state is shared.
        crawl: Name of the crawl in the shared state. "" means the spider's name.
        max_waiting: The maximum number of requests of the crawl that wait in the shared state;
            0: no limit.
        again_after: Seconds after which a finished crawl in the shared state begins again;
            0: never.
        worker_timeout: Seconds without a sign of life after which a worker counts as dead.
        part_seconds: If a feed is stored in parts, the minimum number of seconds before a part is
            closed and the next part begins.
        client: The options of the client for policy files.
        policy_timeout: Seconds for one policy file, with all its redirects.
        min_delay: The minimum number of seconds between two requests to a host.
        max_delay: The maximum wait in seconds. If a request would have to wait longer, it is
            refused.
    """

    agent: Agent
    sessions: tuple[DeclaredSession, ...]
    purpose_header: str
    skip_unusable: bool
    drop_unusable: bool
    rel_nofollow: bool
    elements: str
    tag: TagSetting
    browser: str
    progress: str
    report: str
    metrics: int | None
    sets_gc: bool
    inner: str
    store: Path
    state: str
    crawl: str
    max_waiting: int
    again_after: float
    worker_timeout: float
    part_seconds: float
    client: ClientOptions
    policy_timeout: float
    min_delay: float
    max_delay: float

    def purpose_fields(self, purposes: Iterable[str]) -> dict[str, str]:
        """Return the header fields that tell a server the purposes of a request.

        For example {"Automation-Purpose": "research"}; {} without purposes or `purpose_header`."""
        value = ", ".join(purposes)
        return {self.purpose_header: value} if self.purpose_header and value else {}

    @property
    def ledger(self) -> Path:
        """The path of the pace file, which all crawls with this store share."""
        return self.store.with_name("pace.sqlite")

    @classmethod
    def checked(cls, settings: Settings) -> Self:
        """Read the settings. SettingsError: a setting is invalid."""
        try:
            return cls.from_settings(settings)
        except PolicyError as error:
            stop(str(error))

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Read the settings.

        PolicyError: a setting is invalid. The message has its name and a correct value."""
        agent = _agent(settings)
        _check_slots(settings)
        return cls(
            agent=agent,
            sessions=_sessions(settings),
            purpose_header=_field_name(settings, "COMITY_PURPOSE_HEADER", optional=True),
            skip_unusable=_flag(settings, "COMITY_SKIP_UNUSABLE"),
            drop_unusable=_flag(settings, "COMITY_DROP_UNUSABLE"),
            rel_nofollow=_flag(settings, "COMITY_REL_NOFOLLOW"),
            elements=_word(settings, "COMITY_ELEMENTS", ELEMENTS),
            tag=tag_setting(settings),
            browser=_word(settings, "COMITY_BROWSER", BROWSER),
            progress=_word(settings, "COMITY_PROGRESS", PROGRESS),
            report=_report(settings),
            metrics=_metrics(settings),
            sets_gc=_flag(settings, "COMITY_GC"),
            inner=_word(settings, "COMITY_INNER", INNER),
            store=_store(settings),
            state=_state(settings),
            crawl=str(_get(settings, "COMITY_CRAWL")),
            max_waiting=_number(settings, "COMITY_MAX_WAITING"),
            again_after=_seconds(settings, "COMITY_AGAIN_AFTER"),
            worker_timeout=_seconds(settings, "COMITY_WORKER_TIMEOUT", zero=False),
            part_seconds=_seconds(settings, "COMITY_PART_SECONDS"),
            client=ClientOptions.from_settings(
                settings, user_agent=agent.user_agent, proxy=str(_get(settings, "COMITY_PROXY"))
            ),
            policy_timeout=_seconds(settings, "COMITY_POLICY_TIMEOUT", zero=False),
            min_delay=_seconds(settings, "COMITY_MIN_DELAY"),
            max_delay=_seconds(settings, "COMITY_MAX_DELAY"),
        )


def tag_setting(settings: Settings) -> TagSetting:
    """Read COMITY_TAG. PolicyError: it is invalid."""
    return TagSetting.parse(str(_get(settings, "COMITY_TAG")), subject="COMITY_TAG")


def _wrong(name: str, value: object, problem: str) -> PolicyError:
    return PolicyError(f"{name} `{printable(str(value).encode('utf-8', 'replace'))}` {problem}")


def _agent(settings: Settings) -> Agent:
    token = str(_get(settings, "COMITY_AGENT"))
    purposes = _names(
        settings,
        "COMITY_PURPOSES",
        PURPOSE,
        "is neither a name nor a URI: write them with commas between",
    )
    uses = tuple(dict.fromkeys(use.lower() for use in _names(settings, "COMITY_USES")))
    user_agent = str(settings.get("USER_AGENT") or token)
    arrangements, vocabulary = _arrangements(settings), _vocabulary(settings)
    defaults = parsed_defaults(_get(settings, "COMITY_DEFAULTS"), subject="COMITY_DEFAULTS")
    key_header = _field_name(settings, "COMITY_KEY_HEADER")
    content_usage = tuple(name.lower() for name in _names(settings, "COMITY_CONTENT_USAGE"))
    if not content_usage or not set(content_usage) <= set(CONTENT_USAGE):
        raise _wrong(
            "COMITY_CONTENT_USAGE",
            ",".join(content_usage),
            f"names no draft: write {' or '.join(CONTENT_USAGE)}, or both",
        )
    automation_required = _flag(settings, "COMITY_AUTOMATION_REQUIRED")
    denies_unreachable = _word(settings, "COMITY_UNREACHABLE_USES", UNREACHABLE_USES) == "deny"
    try:
        return Agent(
            token,
            user_agent=user_agent,
            purposes=purposes,
            uses=uses,
            arrangements=arrangements,
            defaults=defaults,
            vocabulary=vocabulary,
            key_header=key_header,
            content_usage=content_usage,
            automation_required=automation_required,
            denies_unreachable=denies_unreachable,
        )
    except PolicyError:
        raise _wrong(
            "COMITY_AGENT", token, "is not a product token: use letters, digits, `_` and `-` only"
        ) from None


def _get(settings: Settings, name: str) -> Any:
    value = settings.get(name)
    return DEFAULTS[name] if value is None else value


def _seconds(settings: Settings, name: str, *, zero: bool = True) -> float:
    value = _get(settings, name)
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not (math.isfinite(seconds) and (seconds >= 0 if zero else seconds > 0)):
        raise _wrong(
            name,
            value,
            f"is not a number of seconds: write a number {'of at least' if zero else 'above'} 0",
        )
    return seconds


def _check_slots(settings: Settings) -> None:
    """Check DOWNLOAD_SLOTS, which sets the pace of hosts. PolicyError: it is invalid."""
    name = "DOWNLOAD_SLOTS"
    value = settings.get(name)
    try:
        slots = [
            (host, slot.get("delay", 0.0), slot.get("concurrency", 1))
            for host, slot in settings.getdict(name).items()
        ]
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise _wrong(
            name, value, 'is not a mapping of hosts: write {"example.com": {"delay": 2}}'
        ) from None
    for host, delay, concurrency in slots:
        try:
            is_delay = math.isfinite(float(delay)) and float(delay) >= 0
        except (TypeError, ValueError, OverflowError):
            is_delay = False
        if not is_delay:
            raise _wrong(
                name, delay, f"is not a `delay` of `{host}`: write a number of seconds, at least 0"
            )
        try:
            int(concurrency)
        except (TypeError, ValueError, OverflowError):
            raise _wrong(
                name, concurrency, f"is not a `concurrency` of `{host}`: write a whole number"
            ) from None


def _number(settings: Settings, name: str) -> int:
    value = str(_get(settings, name)).strip()
    if not NUMBER.fullmatch(value):
        raise _wrong(name, value, "is not a whole number: write one of at least 0")
    return int(value)


def _flag(settings: Settings, name: str) -> bool:
    value = _get(settings, name)
    if str(value).lower() in ("1", "true"):
        return True
    if str(value).lower() in ("0", "false"):
        return False
    raise _wrong(name, value, "is neither true nor false: write True or False")


def _word(settings: Settings, name: str, words: Sequence[str]) -> str:
    word = str(_get(settings, name)).lower()
    if word not in words:
        raise _wrong(name, word, f"is unknown: write {', '.join(words[:-1])} or {words[-1]}")
    return word


def _report(settings: Settings) -> str:
    value = str(_get(settings, "COMITY_REPORT"))
    if "\0" in value or "://" in value:
        raise _wrong(
            "COMITY_REPORT",
            value,
            "is not the path of a file: write one that ends in .html, or in .json",
        )
    if value and not value.endswith(REPORT_ENDINGS):
        raise _wrong(
            "COMITY_REPORT",
            value,
            "ends in neither .html nor .json: write `report.html` for a page",
        )
    return value


def _metrics(settings: Settings) -> int | None:
    value = str(_get(settings, "COMITY_METRICS")).strip()
    if not value:
        return None
    if not NUMBER.fullmatch(value) or int(value) > MAX_PORT:
        raise _wrong(
            "COMITY_METRICS",
            value,
            "is not a port: write a number up to 65535, or 0 for any free port",
        )
    return int(value)


def _field_name(settings: Settings, name: str, *, optional: bool = False) -> str:
    value = str(_get(settings, name))
    if not (FIELD_NAME.fullmatch(value) or (optional and not value)):
        raise _wrong(name, value, "is not a name of a header field: use letters, digits and `-`")
    return value


_NAME_WORDS = "is not a name: use letters, digits, `-`, `.` and `_`, and commas between names"


def _names(
    settings: Settings, name: str, pattern: re.Pattern[str] = NAME, wrong: str = _NAME_WORDS
) -> tuple[str, ...]:
    value = _get(settings, name)
    try:
        names = [
            str(item).strip() for item in (value.split(",") if isinstance(value, str) else value)
        ]
    except TypeError:
        raise _wrong(
            name, value, "is not a list of names: write them with commas between"
        ) from None
    for item in names:
        if item and not pattern.fullmatch(item):
            raise _wrong(name, item, wrong)
    return tuple(filter(None, names))


def parsed_defaults(value: Any, *, subject: str) -> dict[str, Verdict]:
    """Read the verdicts for uses about which sites state nothing.

    `value`: the mapping `{"index": "allow"}`, this mapping as JSON, or `index:allow,train:deny`.
    `subject`: the setting or option that messages name. PolicyError: the value is invalid."""
    remedy = 'write use:allow or use:deny with commas between, e.g. "index:allow,train:deny"'
    try:
        pairs = _pairs(value) if isinstance(value, str) else list(value.items())
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise _wrong(subject, value, f"is not a mapping of uses: {remedy}") from None
    verdicts = {"allow": Verdict.ALLOW, "deny": Verdict.DENY}
    defaults: dict[str, Verdict] = {}
    for use, word in pairs:
        name, verdict = str(use).strip().lower(), verdicts.get(str(word).strip().lower())
        if verdict is None or not NAME.fullmatch(name):
            raise _wrong(subject, f"{use}:{word}", f"is neither allow nor deny for a use: {remedy}")
        if defaults.setdefault(name, verdict) is not verdict:
            raise _wrong(subject, value, f"says both allow and deny for `{name}`")
    return defaults


def _arrangements(settings: Settings) -> tuple[Arrangement, ...]:
    """Read COMITY_ARRANGEMENTS.

    Its value is the mapping `{"example.com": ["take-down", {"uses": ["train"]}]}`, this mapping as
    JSON, or `example.com:take-down,example.org:take-down`."""
    value = _get(settings, "COMITY_ARRANGEMENTS")
    remedy = (
        'write host:feature with commas between, e.g. "example.com:take-down,example.com:re-crawl",'
        " or a mapping for licences"
    )
    try:
        pairs = _pairs(value) if isinstance(value, str) else list(value.items())
        pairs = [
            (host, [terms] if isinstance(terms, str) or hasattr(terms, "items") else list(terms))
            for host, terms in pairs
        ]
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise _wrong("COMITY_ARRANGEMENTS", value, f"is not a mapping of hosts: {remedy}") from None
    features: dict[str, set[str]] = {}
    licences: list[Arrangement] = []
    for name, arranged in pairs:
        try:
            host = _host(str(name), with_wildcard=True)
        except ValueError:
            hosts = '"example.com", "example.com:8080" or "*.example.com"'
            raise _wrong("COMITY_ARRANGEMENTS", name, f"is not a host: write {hosts}") from None
        for term in arranged:
            if hasattr(term, "items"):
                licences.append(_licence(host, dict(term.items())))
                continue
            feature = str(term).strip().lower()
            if feature not in FEATURES:
                raise _wrong(
                    "COMITY_ARRANGEMENTS", term, f"cannot be arranged: write {', '.join(FEATURES)}"
                )
            features.setdefault(host, set()).add(feature)
    return (*(Arrangement(host, frozenset(names)) for host, names in features.items()), *licences)


def _licence(host: str, members: dict[Any, Any]) -> Arrangement:
    """Read a licence in COMITY_ARRANGEMENTS.

    It is a mapping like `{"uses": ["train"], "reference": "contract 2026/14"}`."""
    remedy = 'write {"uses": ["train"], "reference": "contract 7"}'
    if unknown := members.keys() - {"uses", "reference"}:
        raise _wrong(
            "COMITY_ARRANGEMENTS", next(iter(unknown)), f"is not a part of a licence: {remedy}"
        )
    value, reference = members.get("uses"), members.get("reference", "")
    names = value.split(",") if isinstance(value, str) else value
    uses = (
        [str(name).strip().lower() for name in names]
        if isinstance(names, list | tuple | set | frozenset)
        else []
    )
    if not uses or not all(map(NAME.fullmatch, uses)):
        raise _wrong("COMITY_ARRANGEMENTS", members, f"names no uses that are licensed: {remedy}")
    if (
        not isinstance(reference, str)
        or printable(reference.encode("utf-8", "replace")) != reference
    ):
        raise _wrong(
            "COMITY_ARRANGEMENTS",
            reference,
            f"is not a reference of at most {MAX_SHOWN} printable characters: {remedy}",
        )
    return Arrangement(host, uses=frozenset(uses), reference=reference)


def _vocabulary(settings: Settings) -> Vocabulary:
    value = str(_get(settings, "COMITY_VOCABULARY"))
    if not value:
        return Vocabulary.shipped()
    try:
        return Vocabulary.from_toml(Path(value).read_text("utf-8"))
    except PolicyError as error:
        raise _wrong(
            "COMITY_VOCABULARY",
            value,
            f"has a mistake: {printable(str(error).encode('utf-8', 'replace'))}",
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        cause = (
            error.strerror
            if isinstance(error, OSError) and error.strerror
            else "it is not a TOML file in UTF-8"
        )
        raise _wrong("COMITY_VOCABULARY", value, f"cannot be read: {cause}") from None


def _sessions(settings: Settings) -> tuple[DeclaredSession, ...]:
    """Read COMITY_SESSIONS.

    Its value is the mapping `{"example.com": {"token": "env:TOKEN"}}`, or this mapping as JSON.
    Messages never show values that may contain a credential."""
    value = _get(settings, "COMITY_SESSIONS")
    try:
        mapping = json.loads(value.strip() or "{}") if isinstance(value, str) else value
        pairs = list(mapping.items())
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise PolicyError(
            "COMITY_SESSIONS is not a mapping of hosts: write"
            ' {"example.com": {"token": "env:VARIABLE"}}, or the same as JSON'
        ) from None
    sessions: dict[str, DeclaredSession] = {}
    for name, session in pairs:
        try:
            host = _host(str(name))
        except ValueError:
            raise PolicyError(
                "COMITY_SESSIONS has a key that is not a host: write"
                ' "example.com" or "example.com:8080"'
            ) from None
        if host in sessions:
            raise _wrong(
                "COMITY_SESSIONS", host, "occurs more than once: write one session for a host"
            )
        try:
            sessions[host] = declared_session(host, session)
        except PolicyError as error:
            raise PolicyError(f"COMITY_SESSIONS `{host}`: {error}") from None
    return tuple(sessions.values())


def _host(name: str, *, with_wildcard: bool = False) -> str:
    """Return the host in the form of URLs: lower case, A-labels.

    `with_wildcard`: the host may begin with "*.".
    ValueError: the text is not a host, with or without a port."""
    if with_wildcard and name.strip().startswith("*."):
        return f"*.{_host(name.strip()[2:])}"
    match = HOST.fullmatch(name.strip())
    if not match:
        raise ValueError
    host = origin_of(f"http://{match[1]}").removeprefix("http://")
    port = urlsplit(f"//{match[0]}").port
    return host.strip("[]") if port is None else f"{host}:{port}"


class _Members(list[tuple[Any, Any]]):
    """The members of a JSON object, in which a name may occur twice."""

    def items(self) -> Self:
        return self


def _pairs(text: str) -> list[tuple[Any, Any]]:
    """Return the pairs of a JSON object, or of `key:word` with commas between.

    A key may contain colons. ValueError: the text has neither form."""
    if text.lstrip().startswith("{"):
        return list(json.loads(text, object_pairs_hook=_Members))
    pairs = [pair.rpartition(":") for pair in text.split(",") if pair.strip()]
    if not all(colon for _, colon, _ in pairs):
        raise ValueError
    return [(key, word) for key, _, word in pairs]


def _store(settings: Settings) -> Path:
    value = str(_get(settings, "COMITY_STORE"))
    if "\0" in value:
        raise _wrong("COMITY_STORE", value, "has a NUL character: write the path of a file")
    if "://" in value:
        raise _wrong("COMITY_STORE", value, "is a URL: write the path of a file")
    if value:
        return Path(value)
    store = project_store()
    return store if store.exists() else machine_store()


def _state(settings: Settings) -> str:
    value = str(_get(settings, "COMITY_STATE"))
    if value and settings.get("JOBDIR"):
        raise PolicyError(
            "JOBDIR is set beside COMITY_STATE, which keeps the requests of the crawl already:"
            " leave JOBDIR out"
        )
    return value


def project_store() -> Path:
    """Return the path of the store in the data folder of the project around the current folder.

    Scrapy's documentation, "Default structure of Scrapy projects", defines this folder."""
    folders = (Path.cwd(), *Path.cwd().parents)
    found = next((folder for folder in folders if (folder / "scrapy.cfg").is_file()), None)
    if found is None:
        return Path(".scrapy/comity/policies.sqlite")
    of_user = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "scrapy.cfg"
    config = ConfigParser()
    config.read(
        ["/etc/scrapy.cfg", of_user, Path("~/.scrapy.cfg").expanduser(), found / "scrapy.cfg"]
    )
    data = config.get("datadir", "default", fallback=str(found / ".scrapy"))
    return Path(data) / "comity/policies.sqlite"


def machine_store() -> Path:
    """Return the path of the store that all projects of the user on this machine share.

    Projects with this store also share the pace file, which is in the same folder.
    PolicyError: there is no home folder."""
    # Without a home folder, platformdirs raises RuntimeError. Older versions return a path that
    # begins with "~".
    with suppress(RuntimeError):
        if (folder := user_data_path("comity", appauthor=False)).is_absolute():
            return folder / "policies.sqlite"
    raise PolicyError(
        "COMITY_STORE is not set, and there is no home folder to keep policy files in:"
        " set it to a path of yours"
    )
