"""Spider arguments, which come as text from `scrapy crawl -a name=value`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NoReturn

from comity.dataset.tagging.page_fields import Extractor, by_trafilatura
from comity.gate import options


def stop(spider: str, message: str) -> NoReturn:
    """Ends the program with one line. Scrapy would print a traceback for any other exception."""
    options.stop(message, program=f"scrapy crawl {spider}")


def number(spider: str, name: str, value: str | int | None) -> int | None:
    """A whole number of at least 0, None where it is not given."""
    if value is None:
        return None
    try:
        number = int(value)
    except ValueError:
        number = -1
    if number < 0:
        stop(spider, f"{name} `{value}` is not a whole number of at least 0")
    return number


def flag(spider: str, name: str, value: str | bool) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    is_true = words.get(str(value).lower())
    if is_true is None:
        stop(spider, f"{name} `{value}` is neither true nor false")
    return is_true


def extractor(spider: str, value: str) -> Extractor | None:
    """The extractor of the text of a page, None for comity's own; ends the program where it is not installed."""
    if value == "main":
        return None
    if value != "trafilatura":
        stop(spider, f"text `{value}` is neither main nor trafilatura")
    if find_spec("trafilatura") is None:
        stop(spider, "text=trafilatura: trafilatura is not installed: pip install 'comity[text]'")
    return by_trafilatura


def only(spider: str, unknown: dict[str, object], arguments: str) -> None:
    """Ends the program where an argument is given that the spider doesn't know."""
    if unknown:
        stop(spider, f"there is no argument `{next(iter(unknown))}`: {arguments}")
