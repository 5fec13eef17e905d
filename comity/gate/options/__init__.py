"""Read the operator's settings once, and check them (docs/settings.md).

    errors      the errors about invalid settings
    kinds       kinds of settings: numbers, words, lists, ...
    values      the mappings and files among the settings
    profiles    lists of settings for common wishes
    opt_outs    the files of registries of opt-outs
    signing     the key that signs requests
    store       the path of the store for policy files
    declared    every setting, with its name, default, kind and meaning

Add a setting in `declared`, and an attribute in `Options`. Then run `make docs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from comity.dataset.tags.setting import TagSetting
from comity.gate.fetching.options import ClientOptions
from comity.gate.options import declared
from comity.gate.options.declared import SETTINGS
from comity.gate.options.errors import SettingsError, invalid, stop
from comity.gate.options.kinds import NAME
from comity.gate.options.signing import signer_of
from comity.gate.options.store import machine_store, project_store
from comity.gate.request.purchases import LicenseToken, Payment
from comity.gate.request.sessions import DeclaredSession
from comity.gate.settings import Settings
from comity.policies import Agent, Arrangement, PolicyError
from comity.policies.document import html
from comity.policies.registry import OptOuts
from comity.policies.vocabulary.table import Vocabulary

__all__ = [
    "ASYNCIO_REACTOR",
    "DEFAULTS",
    "NAME",
    "Options",
    "SettingsError",
    "machine_store",
    "project_store",
    "stop",
]

ASYNCIO_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

DEFAULTS: dict[str, Any] = {setting.name: setting.default for setting in SETTINGS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of one crawl. docs/settings.md has their meanings.

        options = Options.from_settings(crawler.settings)
        options.min_delay

    Attributes:
        agent: The crawler: COMITY_AGENT, USER_AGENT, and the settings of its purposes, uses,
            arrangements and readings.
        profile: COMITY_PROFILE. "" means none.
        sessions: COMITY_SESSIONS, one for each host.
        purpose_header: COMITY_PURPOSE_HEADER. "" means no header field.
        skip_unusable: COMITY_SKIP_UNUSABLE.
        drop_unusable: COMITY_DROP_UNUSABLE.
        rel_nofollow: COMITY_REL_NOFOLLOW.
        clean_param: COMITY_CLEAN_PARAM.
        elements: COMITY_ELEMENTS: "tag", "redact" or "strip".
        tag: COMITY_TAG.
        browser: COMITY_BROWSER: "all" or "documents".
        progress: COMITY_PROGRESS: "line", "summary" or "off".
        report: COMITY_REPORT. "" means no report.
        metrics: COMITY_METRICS. 0 means any free port, None no metrics.
        sets_gc: COMITY_GC.
        inner: COMITY_INNER: "deny" or "allow".
        store: COMITY_STORE. If it is empty, the store of the project or of the machine.
        state: COMITY_STATE. "" means that this process is the whole crawl.
        crawl: COMITY_CRAWL. "" means the spider's name.
        max_waiting: COMITY_MAX_WAITING. 0 means no limit.
        again_after: COMITY_AGAIN_AFTER, in seconds. 0 means never.
        keep_seen: COMITY_KEEP_SEEN, in seconds. 0 means not beyond a run, inf all runs.
        worker_timeout: COMITY_WORKER_TIMEOUT, in seconds.
        limits: COMITY_LIMITS: "crawl" or "worker".
        items: COMITY_ITEMS. "" means no folder for items.
        items_format: COMITY_ITEMS_FORMAT: "jsonl", "parquet", "warc" or "warc.gz".
        part_seconds: COMITY_PART_SECONDS.
        part_octets: COMITY_PART_OCTETS. 0 means any size.
        client: The options of the client for policy files, with COMITY_PROXY, and the signer of
            COMITY_KEY and COMITY_SIGNATURE_AGENT.
        policy_timeout: COMITY_POLICY_TIMEOUT, in seconds.
        download_handler: COMITY_DOWNLOAD_HANDLER.
        min_delay: COMITY_MIN_DELAY, in seconds.
        max_delay: COMITY_MAX_DELAY, in seconds.
        license_tokens: The license tokens in COMITY_ARRANGEMENTS, at most one for each host.
        payments: The payments in COMITY_ARRANGEMENTS, at most one for each host.
    """

    agent: Agent
    profile: str = declared.PROFILE.attribute()
    sessions: tuple[DeclaredSession, ...] = declared.SESSIONS.attribute()
    purpose_header: str = declared.PURPOSE_HEADER.attribute()
    skip_unusable: bool = declared.SKIP_UNUSABLE.attribute()
    drop_unusable: bool = declared.DROP_UNUSABLE.attribute()
    rel_nofollow: bool = declared.REL_NOFOLLOW.attribute()
    clean_param: bool = declared.CLEAN_PARAM.attribute()
    elements: str = declared.ELEMENTS.attribute()
    tag: TagSetting = declared.TAG.attribute()  # noqa: RUF009  # a field
    browser: str = declared.BROWSER.attribute()
    progress: str = declared.PROGRESS.attribute()
    report: str = declared.REPORT.attribute()
    metrics: int | None = declared.METRICS.attribute()
    sets_gc: bool = declared.GC.attribute()
    inner: str = declared.INNER.attribute()
    store: Path = declared.STORE.attribute()  # noqa: RUF009  # a field
    state: str = declared.STATE.attribute()
    crawl: str = declared.CRAWL.attribute()
    max_waiting: int = declared.MAX_WAITING.attribute()
    again_after: float = declared.AGAIN_AFTER.attribute()
    keep_seen: float = declared.KEEP_SEEN.attribute()
    worker_timeout: float = declared.WORKER_TIMEOUT.attribute()
    limits: str = declared.LIMITS.attribute()
    items: str = declared.ITEMS.attribute()
    items_format: str = declared.ITEMS_FORMAT.attribute()
    part_seconds: float = declared.PART_SECONDS.attribute()
    part_octets: int = declared.PART_OCTETS.attribute()
    client: ClientOptions
    policy_timeout: float = declared.POLICY_TIMEOUT.attribute()
    download_handler: bool = declared.DOWNLOAD_HANDLER.attribute()
    min_delay: float = declared.MIN_DELAY.attribute()
    max_delay: float = declared.MAX_DELAY.attribute()
    license_tokens: tuple[LicenseToken, ...] = ()
    payments: tuple[Payment, ...] = ()

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
        html.choose(declared.HTML_PARSER.read(settings))
        _check_slots(settings)
        _check_state(settings)
        read = {
            field.name: field.metadata["setting"].read(settings)
            for field in fields(cls)
            if "setting" in field.metadata
        }
        client = ClientOptions.from_settings(
            settings,
            user_agent=agent.user_agent,
            proxy=declared.PROXY.read(settings),
            signer=signer_of(declared.KEY.read(settings), declared.SIGNATURE_AGENT.read(settings)),
        )
        arranged = declared.ARRANGEMENTS.read(settings)
        return cls(
            agent=agent,
            client=client,
            license_tokens=tuple(one for one in arranged if isinstance(one, LicenseToken)),
            payments=tuple(one for one in arranged if isinstance(one, Payment)),
            **read,
        )


def _agent(settings: Settings) -> Agent:
    token, vocabulary = declared.AGENT.read(settings), declared.VOCABULARY.read(settings)
    return Agent(
        token,
        user_agent=str(settings.get("USER_AGENT") or token),
        purposes=declared.PURPOSES.read(settings),
        uses=declared.USES.read(settings),
        arrangements=tuple(
            arranged
            for arranged in declared.ARRANGEMENTS.read(settings)
            if isinstance(arranged, Arrangement)
        ),
        opt_outs=_opt_outs(settings, vocabulary),
        defaults=declared.USE_DEFAULTS.read(settings),
        vocabulary=vocabulary,
        key_header=declared.KEY_HEADER.read(settings),
        content_usage=declared.CONTENT_USAGE.read(settings),
        automation_required=declared.AUTOMATION_REQUIRED.read(settings),
        denies_unreachable=declared.UNREACHABLE_USES.read(settings) == "deny",
    )


def _opt_outs(settings: Settings, vocabulary: Vocabulary) -> OptOuts:
    """Return the registries of opt-outs. PolicyError: one is invalid, or names unknown uses."""
    opt_outs = declared.OPT_OUT.read(settings)
    for registry in opt_outs.registries:
        registry.check_uses(vocabulary)
    return opt_outs


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
        raise invalid(
            name, value, 'is not a mapping of hosts: write {"example.com": {"delay": 2}}'
        ) from None
    for host, delay, concurrency in slots:
        try:
            is_delay = math.isfinite(float(delay)) and float(delay) >= 0
        except (TypeError, ValueError, OverflowError):
            is_delay = False
        if not is_delay:
            raise invalid(
                name, delay, f"is not a `delay` of `{host}`: write a number of seconds, at least 0"
            )
        try:
            int(concurrency)
        except (TypeError, ValueError, OverflowError):
            raise invalid(
                name, concurrency, f"is not a `concurrency` of `{host}`: write a whole number"
            ) from None


def _check_state(settings: Settings) -> None:
    """Check that not both COMITY_STATE and JOBDIR are set. PolicyError: both are."""
    if declared.STATE.read(settings) and settings.get("JOBDIR"):
        raise PolicyError(
            "JOBDIR is set beside COMITY_STATE, which keeps the requests of the crawl already:"
            " leave JOBDIR out"
        )
