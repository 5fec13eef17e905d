"""`comity key`: create the key that signs requests, and the directory with its public part."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from urllib.parse import urlsplit

from comity.extras import required
from comity.gate.options.signing import EXAMPLE, KEY_NAME, URL_NAME, signature_agent
from comity.gate.run.arguments import CommandParser
from comity.gate.run.console import complain, say
from comity.policies import PolicyError
from comity.policies.syntax.urls import origin_of

ACTIONS = {
    "new": "Create a private key in a new file that only you can read",
    "directory": "Write the directory with the public keys, and print its header fields",
}
DAYS = 30  # the validity of the signatures of a directory
MAX_DAYS = 366


def add_options(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(
        parser_class=CommandParser,
        dest="action",
        metavar="|".join(ACTIONS),
        required=True,
        title="actions",
    )
    new, directory = (
        actions.add_parser(name, help=help_, description=f"{help_}.", prog=f"{parser.prog} {name}")
        for name, help_ in ACTIONS.items()
    )
    new.add_argument("key", type=Path, metavar="FILE", help="the new file, such as key.pem")
    directory.add_argument(
        "keys",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a private key; name the old and the new one while you replace a key",
    )
    directory.add_argument(
        "--url",
        required=True,
        metavar="URL",
        help=f"the address of the directory's host, such as {EXAMPLE}",
    )
    directory.add_argument(
        "--folder",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="the folder that the host serves; .well-known/ is created in it",
    )
    directory.add_argument(
        "--days",
        type=int,
        default=DAYS,
        metavar="NUMBER",
        help=f"the days for which the header fields are valid (default: {DAYS})",
    )


def run(options: Namespace) -> int:
    with required("comity key", "signatures", PolicyError):
        from comity.signatures import keys  # noqa: F401  # to name a missing package once
    if options.action == "new":
        _create(options.key)
    else:
        _write_directory(options)
    return 0


def _create(path: Path) -> None:
    from comity.signatures.keys import create_private_key, thumbprint

    key = create_private_key(path)
    say(f"{path} has the private key {thumbprint(key.public_key())}. Keep it secret.")
    say("1. Publish its public part:")
    say(f"    comity key directory {path} --url {EXAMPLE} --folder FOLDER")
    say("2. Sign all requests with it, by these settings:")
    say(f'    {KEY_NAME} = "{path.absolute()}"')
    say(f'    {URL_NAME} = "{EXAMPLE}"')


def _write_directory(options: Namespace) -> None:
    from comity.signatures import WELL_KNOWN
    from comity.signatures.directory import directory_fields, key_directory
    from comity.signatures.keys import read_private_key

    url = signature_agent("--url", options.url)
    if not url or urlsplit(url).path not in ("", "/", WELL_KNOWN):
        raise PolicyError(f"--url `{options.url}` is not an address of a host: write {EXAMPLE}")
    if not 0 < options.days <= MAX_DAYS:
        raise PolicyError(f"--days `{options.days}`: write a number from 1 to {MAX_DAYS}")
    private_keys = [read_private_key("FILE", path) for path in dict.fromkeys(options.keys)]
    body, now = key_directory(private_keys), int(time.time())
    file = options.folder / WELL_KNOWN[1:]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    except OSError as error:
        raise PolicyError(
            f"{file} cannot be written: {error.strerror}: write a --folder that can be written"
        ) from None
    expires = now + options.days * 24 * 3600
    fields = directory_fields(body, origin_of(url), private_keys, created=now, expires=expires)
    complain(f"comity key directory: {file} is written. Let the host send it with these fields:")
    for name, value in fields.items():
        say(f"{name}: {value}")
