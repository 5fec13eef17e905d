"""What `comity doctor` has found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings

from comity.doctor.extras import Extra
from comity.doctor.origins import Origin
from comity.gate.options import Options
from comity.policies.formats import FORMATS

VERSION = 1  # of the JSON


class Check(NamedTuple):
    """The result of one check.

    Attributes:
        name: The part that was checked.
        text: What was found, in one sentence.
        remedy: What to do; "" if the text says it, or if there is nothing to do.
        is_ok: False if something is wrong.
    """

    name: str
    text: str
    remedy: str = ""
    is_ok: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All that was found.

    Attributes:
        versions: The versions of comity, Python and packages, by name.
        project: The module with the settings of the project; "" outside of a project.
        extras: The extras of comity.
        settings: The settings of a crawl.
        obeys: What a crawl with these settings obeys. {} if the settings are invalid.
        checks: The checks.
        warnings: The warnings of the add-on at the start of a crawl.
    """

    versions: dict[str, str]
    project: str
    extras: list[Extra]
    settings: list[Origin]
    obeys: dict[str, Any]
    checks: list[Check]
    warnings: list[str]

    @property
    def is_ok(self) -> bool:
        return all(check.is_ok for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "ok": self.is_ok,
            "versions": self.versions,
            "project": self.project,
            "extras": [
                {"name": extra.name, "missing": extra.missing, "remedy": extra.remedy}
                for extra in self.extras
                if extra.name
            ],
            "settings": [asdict(setting) for setting in self.settings],
            "obeys": self.obeys,
            "checks": [
                {"name": one.name, "ok": one.is_ok, "text": one.text, "remedy": one.remedy}
                for one in self.checks
            ],
            "warnings": self.warnings,
        }


def obeyed(options: Options, settings: BaseSettings) -> dict[str, Any]:
    """Return what a crawl obeys. `settings`: those that the add-ons have made."""
    agent = options.agent
    return {
        "agent": agent.token,
        "user agent": str(settings.get("USER_AGENT")),
        "formats": [one.title for one in FORMATS],
        "purposes": [*agent.purposes],
        "uses": [*agent.uses],
        "defaults": {use: verdict.value for use, verdict in agent.defaults.items()},
        "arrangements": [*agent.arrangements],
        "least delay": options.min_delay,
        "longest delay": options.max_delay,
    }
