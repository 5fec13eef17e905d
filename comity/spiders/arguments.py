"""Read spider arguments, which `comity crawl -a name=value` passes as text.

The functions end the program with one line if an argument is invalid."""

from __future__ import annotations

from typing import NoReturn

from comity import extras
from comity.dataset.tagging.page_fields import Extractor, by_trafilatura
from comity.gate import options


def stop(spider: str, message: str) -> NoReturn:
    """End the program with one line: `message`. If a spider raised, Scrapy would print a traceback.

    `spider`: the name of the spider, for the beginning of the line."""
    options.stop(message, program=f"comity crawl {spider}")


def number(spider: str, name: str, value: str | int | None) -> int | None:
    """Return the whole number, 0 or more, in the argument `name`. None: `value` is None."""
    if value is None:
        return None
    try:
        number = int(value)
    except ValueError:
        number = -1
    if number < 0:
        stop(spider, f"{name} `{value}` is not a whole number of at least 0")
    return number


def flag(spider: str, name: str, value: str | bool) -> bool:  # noqa: FBT001  # any value
    """Return True for 1, true and yes, False for 0, false and no."""
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    is_true = words.get(str(value).lower())
    if is_true is None:
        stop(spider, f"{name} `{value}` is invalid: write true or false")
    return is_true


def extractor(spider: str, value: str) -> Extractor | None:
    """Return the extractor for the text of pages. None means comity's own.

    The program ends if the extractor is not installed."""
    if value == "main":
        return None
    if value != "trafilatura":
        stop(spider, f"text `{value}` is invalid: write main or trafilatura")
    if extras.is_missing("trafilatura"):
        stop(spider, extras.needs("text=trafilatura", "trafilatura", "text"))
    return by_trafilatura


def only(spider: str, unknown: dict[str, object], arguments: str) -> None:
    """End the program if there are unknown arguments.

    `arguments`: the end of the message, which lists the known arguments, e.g. "it takes url"."""
    if unknown:
        stop(spider, f"there is no argument `{next(iter(unknown))}`: {arguments}")
