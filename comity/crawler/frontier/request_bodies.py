"""Requests as MessagePack, for other processes: plain values alone, and nothing that runs when it is read."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import msgpack
from scrapy.http import Request
from scrapy.utils.misc import load_object
from scrapy.utils.request import request_from_dict

if TYPE_CHECKING:
    from scrapy import Spider

TUPLE = 1  # code of the extension type: an array that Python has as a tuple


def packed(request: Request, spider: Spider) -> bytes:
    """Return the request with the names of its callbacks. ValueError, with what to do about it, where something of it is no plain
    value."""
    members = request.to_dict(spider=spider)
    if "_class" in members and load_object(members["_class"]) is not type(request):
        raise ValueError(f"`{members['_class']}` is not its class")
    for name, value in members.items():
        try:
            _pack(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(
                f"its `{name}` cannot be sent to other workers ({error}): use numbers, texts, bytes, lists, tuples and dicts"
            ) from None
    return _pack(members)


def unpacked(body: bytes, spider: Spider) -> Request:
    """Return the request. ValueError where it is none, or the spider has no such callback."""
    try:
        members = msgpack.unpackb(body, ext_hook=_value, strict_map_key=False)
        if "_class" in members and not issubclass(load_object(members["_class"]), Request):
            raise ValueError(f"`{members['_class']}` is no class of requests")
        return request_from_dict(members, spider=spider)
    except Exception as error:  # whatever classes and callbacks of the project raise
        raise ValueError(str(error) or type(error).__name__) from error


def url_of(body: bytes) -> str:
    """Return the URL of the request; "" where it cannot be read."""
    try:
        return str(msgpack.unpackb(body, ext_hook=_value, strict_map_key=False)["url"])
    except (ValueError, KeyError, TypeError):
        return ""


def _pack(value: Any) -> bytes:
    packed_value: bytes = msgpack.packb(value, strict_types=True, default=_extended)
    return packed_value


def _extended(value: Any) -> msgpack.ExtType | str:
    if isinstance(value, str) and not isinstance(value, Enum):  # of lxml, say: Scrapy's rules have the text of a link
        return str.__str__(value)
    if type(value) is tuple:
        return msgpack.ExtType(TUPLE, _pack(list(value)))
    raise TypeError(f"it has a {type(value).__name__}")


def _value(code: int, data: bytes) -> Any:
    if code != TUPLE:
        raise ValueError("there is a value of another version of comity")
    return tuple(msgpack.unpackb(data, ext_hook=_value, strict_map_key=False))
