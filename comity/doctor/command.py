"""`comity doctor`: find what is missing or wrong before a crawl does."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import Any, ClassVar

from rich.console import Console
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings
from scrapy.utils.project import inside_project

from comity.cli import versions
from comity.crawler.commands import listed
from comity.crawler.commands.crawl import ADDON, READY_SETTINGS, has_addon
from comity.doctor.diagnosis import Check, Diagnosis, obeyed
from comity.doctor.extras import Extra, installed_extras
from comity.doctor.origins import (
    DEFAULT,
    Origin,
    origins,
    settings_module,
    with_addons,
)
from comity.doctor.reach import reach
from comity.gate.options import Options, SettingsError
from comity.gate.run.console import add_row, flush_output, line, open_console, say, table
from comity.policies import PolicyError
from comity.policies.syntax.printable import unhidden, without_passwords

WRONG = 1  # exit status


class DoctorCommand(listed.Doctor):
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options]"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. Outside of a project, the settings are those of the ready"
            " crawler. The command asks only the server and the browser that the settings name,"
            f" and changes nothing. Exit status: 0 all is well; {WRONG} something is wrong;"
            " 2 wrong usage."
        )

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--all", action="store_true", help="list settings with defaults too")
        parser.add_argument("--json", action="store_true", help="print JSON, with all settings")

    def process_options(self, args: list[str], opts: Namespace) -> None:
        assert self.settings is not None
        if not inside_project():
            self.settings.setmodule(READY_SETTINGS, priority="project")
        super().process_options(args, opts)
        if args:
            raise UsageError(f"unrecognized arguments: {' '.join(args)}", print_help=False)

    def run(self, args: list[str], opts: Namespace) -> None:
        assert self.settings is not None
        diagnosis = diagnose(self.settings)
        if opts.json:
            say(json.dumps(diagnosis.as_json(), indent=2))
        else:
            _show(diagnosis, open_console(), lists_defaults=opts.all)
        flush_output()
        self.exitcode = 0 if diagnosis.is_ok else WRONG


def diagnose(settings: BaseSettings) -> Diagnosis:
    """Check the installation and the settings."""
    extras = installed_extras()
    checks = [_check_packages(extras), _check_addon(settings)]
    effective, warnings, obeys = settings, list[str](), dict[str, Any]()
    try:
        options = Options.from_settings(settings)
    except PolicyError as error:
        checks.append(Check("settings", str(error), is_ok=False))
    else:
        problem = ""
        try:
            effective, warnings = with_addons(settings)
        except SettingsError as error:
            problem = str(error).removeprefix("comity: ")
        except Exception as error:  # an add-on of another package may raise anything
            problem = f"ADDONS: {type(error).__name__}: {error}"
        checks.append(Check("settings", problem or "valid", is_ok=not problem))
        checks += reach(options, effective)
        obeys = obeyed(options, effective)
    return Diagnosis(
        versions=versions(),
        project=settings_module() if inside_project() else "",
        extras=extras,
        settings=origins(effective),
        obeys=obeys,
        checks=[check._replace(text=without_passwords(check.text)) for check in checks],
        warnings=[without_passwords(warning) for warning in warnings],
    )


def _check_packages(extras: list[Extra]) -> Check:
    needed = next(extra for extra in extras if not extra.name)
    if not needed.missing:
        return Check("packages", "all packages that comity always needs are installed")
    missing = ", ".join(needed.missing)
    return Check("packages", f"missing or too old: {missing}", needed.remedy, is_ok=False)


def _check_addon(settings: BaseSettings) -> Check:
    if has_addon(settings):
        return Check("add-on", "crawls obey the policies of sites")
    return Check(
        "add-on",
        "ADDONS does not have comity, so crawls obey no policies by it",
        f'write into {settings_module()}: ADDONS = {{"{ADDON}.Addon": 100}}',
        is_ok=False,
    )


def _show(diagnosis: Diagnosis, console: Console, *, lists_defaults: bool) -> None:
    installed = diagnosis.versions
    names = ("comity", "Python", "Scrapy")
    console.print(line(", ".join(f"{name} {installed[name]}" for name in names)))
    console.print(line(f"Settings: {diagnosis.project or f'no project, so {READY_SETTINGS}'}"))
    console.print()
    _show_extras(diagnosis.extras, console)
    _show_settings(diagnosis.settings, console, lists_defaults=lists_defaults)
    if diagnosis.obeys:
        rows = table("A crawl with these settings", "", "")
        rows.show_header = False
        for name, value in diagnosis.obeys.items():
            add_row(rows, name, _listed(value))
        console.print(rows)
        console.print()
    for warning in diagnosis.warnings:
        console.print(line(f"warning: {warning}", "yellow"), soft_wrap=True)
    rows = table("Checks", "", "", "")
    rows.show_header = False
    for check in diagnosis.checks:
        state = line("ok", "green") if check.is_ok else line("WRONG", "bold red")
        remedy = f": {check.remedy}" if check.remedy else ""
        add_row(rows, state, check.name, unhidden(f"{check.text}{remedy}"))
    console.print(rows)


def _show_extras(extras: list[Extra], console: Console) -> None:
    rows = table("Extras", "extra", "missing", "to install it")
    for extra in extras:
        if extra.name:
            missing = ", ".join(extra.missing)
            add_row(rows, extra.name, missing or "-", extra.remedy if missing else "installed")
    console.print(rows)
    console.print()


def _show_settings(settings: list[Origin], console: Console, *, lists_defaults: bool) -> None:
    listed_ = [one for one in settings if lists_defaults or one.origin != DEFAULT]
    rows = table("Settings", "setting", "value", "from")
    for one in listed_:
        add_row(rows, one.name, one.value, one.origin)
    console.print(rows)
    if others := len(settings) - len(listed_):
        console.print(line(f"{others} more have their defaults: --all lists them"))
    console.print()


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {one}" for name, one in value.items()) or "none"
    return ", ".join(value) or "none" if isinstance(value, list) else str(value)
