"""`comity profile`: print the settings of a profile."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from comity.gate.options.profiles import NAME, PROFILES, profile_name
from comity.gate.run.console import open_console, say, table


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "profile",
        nargs="?",
        metavar="PROFILE",
        help=f"one of {', '.join(PROFILES)} (default: list all profiles)",
    )


def run(options: Namespace) -> int:
    name = profile_name("PROFILE", options.profile or "")
    if not name:
        rows = table("The profiles", "profile", "for")
        for each, profile in PROFILES.items():
            rows.add_row(each, profile.wish)
        open_console().print(rows)
        return 0
    say(f'# {NAME} = "{name}" sets these, unless you set them yourself.')
    for line in PROFILES[name].lines():
        say(line)
    return 0
