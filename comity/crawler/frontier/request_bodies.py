"""Requests as MessagePack, for other processes.

A body holds plain values only, and reading it runs no code: it imports no module, makes only
classes of requests that this process has loaded, and looks up no methods but callbacks. Anyone who
reaches the server can write a body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import ismethod
from typing import TYPE_CHECKING, Any

import msgpack
from scrapy import Spider
from scrapy.http import Request

from comity.cluster.plain_values import received, sendable

if TYPE_CHECKING:
    from collections.abc import Callable

# Methods of Scrapy's own spiders that are callbacks and have private names.
OF_SCRAPY = frozenset({"_parse", "_callback", "_errback", "_parse_sitemap"})
# Methods that Scrapy calls itself, which a spider of a project may define anew.
NO_CALLBACKS = frozenset({*vars(Spider), "closed", "start_requests"}) - {"parse", "_parse"}
# Keys of `meta` whose texts name functions that scrapy-playwright imports and calls.
FUNCTIONS = ("playwright_page_init_callback", "playwright_page_event_handlers")


def pack(request: Request, spider: Spider) -> bytes:
    """Return the request with the names of its callbacks.

    ValueError, with the remedy: another worker could not read it."""
    members = request.to_dict(spider=spider)
    if "_class" in members and _request_class(members["_class"]) is not type(request):
        raise ValueError(
            f"`{members['_class']}` is not its class: define the class at the top of its module"
        )
    for name in ("callback", "errback"):
        if members[name] is not None:
            _method(spider, members[name])
    _check_meta(members["meta"])
    packer = msgpack.Packer(strict_types=True)
    body: bytes = packer.pack_map_header(len(members))
    for name, value in members.items():
        try:
            body += packer.pack(name) + packer.pack(sendable(value))
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"its `{name}` cannot be sent to other workers ({error}):"
                " use numbers, texts, bytes, lists, tuples and dicts"
            ) from None
    return body


def unpack(body: bytes, spider: Spider) -> Request:
    """Return the request. ValueError: the body is not a request, or has an unknown callback."""
    try:
        members = received(msgpack.unpackb(body, strict_map_key=False), -1)
        kind = _request_class(members["_class"]) if "_class" in members else Request
        _check_meta(members.get("meta") or {})
        arguments = {name: value for name, value in members.items() if name in kind.attributes}
        for name in ("callback", "errback"):
            if members.get(name) is not None:
                arguments[name] = _method(spider, members[name])
        return kind(**arguments)
    except Exception as error:  # the class of the request may raise any
        raise ValueError(str(error) or type(error).__name__) from error


def url_of(body: bytes) -> str:
    """Return the URL of the request; "" if it cannot be read."""
    try:
        return str(msgpack.unpackb(body, strict_map_key=False)["url"])
    except (ValueError, KeyError, TypeError):
        return ""


def _request_class(name: str) -> type[Request]:
    """Return the loaded class of requests that has this name. ValueError: there is none."""
    found = [
        kind for kind in _request_classes(Request) if f"{kind.__module__}.{kind.__name__}" == name
    ]
    if not found:
        raise ValueError(
            f"`{name}` is not a class of requests that is loaded here:"
            " import it in the module of the spider"
        )
    return found[-1]  # if a module was loaded again, the last class is its current one


def _request_classes(kind: type[Request]) -> Iterator[type[Request]]:
    yield kind
    for derived in kind.__subclasses__():
        yield from _request_classes(derived)


def _method(spider: Spider, name: str) -> Callable[..., Any]:
    """Return the callback of this name. ValueError: the spider has none."""
    if _names_callback(type(spider), name):
        method = getattr(spider, name, None)
        if ismethod(method) and method.__self__ is spider:
            return method
    remedy = (
        f": name it `{name.strip('_')}`" if name.startswith("_") and not name.endswith("__") else ""
    )
    raise ValueError(f"`{name}` is not a public method of the spider{remedy}")


def _names_callback(kind: type[Spider], name: str) -> bool:
    """Return True for a public method of a project's class and for callbacks of Scrapy's."""
    own = (vars(base) for base in kind.__mro__ if base not in Spider.__mro__)
    is_public = (
        not name.startswith("_")
        and name not in NO_CALLBACKS
        and any(callable(members.get(name)) for members in own)
    )
    return is_public or name == "parse" or name in OF_SCRAPY


def _check_meta(meta: Mapping[Any, Any]) -> None:
    """ValueError: the meta names a function that scrapy-playwright would import and call."""
    for key in FUNCTIONS:
        value = meta.get(key)
        if isinstance(value, str) or (
            isinstance(value, Mapping) and any(isinstance(name, str) for name in value.values())
        ):
            raise ValueError(
                f"`{key}` of its `meta` names a function, which the state does not hold"
            )
