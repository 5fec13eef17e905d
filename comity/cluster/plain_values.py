"""Plain values as MessagePack: numbers, texts, bytes, lists, tuples and dicts.

Reading them runs no code. Anyone who reaches the server can write a value."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgpack

TUPLE = 1  # code of the extension type: an array that Python has as a tuple
MAX_DEPTH = 32  # containers in each other
TOO_DEEP = f"it has more than {MAX_DEPTH} containers in each other"


def pack(value: Any) -> bytes:
    """Return the value as MessagePack. ValueError: it is not a plain value, or it is too deep."""
    try:
        packed: bytes = msgpack.packb(sendable(value), strict_types=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(str(error)) from None
    return packed


def unpack(body: bytes) -> Any:
    """Return the value of `pack`. ValueError: the body is invalid."""
    try:
        return received(msgpack.unpackb(body, strict_map_key=False))
    except Exception as error:  # keys of a dict that have no hash
        raise ValueError(str(error) or type(error).__name__) from error


def sendable(value: Any, depth: int = 0) -> Any:
    """Return the value as MessagePack can hold it.

    TypeError: it is not a plain value. ValueError: it is too deep.

    The array of a tuple is packed before the packer of the whole value begins. Packers that run
    within each other end the process at some hundred levels."""
    kind = type(value)
    if kind in (list, tuple, dict):
        if depth >= MAX_DEPTH:
            raise ValueError(TOO_DEEP)
        if kind is dict:
            return {
                sendable(key, depth + 1): sendable(inner, depth + 1) for key, inner in value.items()
            }
        values = [sendable(inner, depth + 1) for inner in value]
        return (
            values
            if kind is list
            else msgpack.ExtType(TUPLE, msgpack.packb(values, strict_types=True))
        )
    # lxml has subclasses of str, which Scrapy's rules put into `meta`.
    if isinstance(value, str) and not isinstance(value, Enum):
        return str.__str__(value)
    if value is None or kind in (bool, int, float, bytes, bytearray, memoryview):
        return value
    raise TypeError(f"it has a {kind.__name__}")


def received(value: Any, depth: int = 0) -> Any:
    """Return the value that `sendable` was given. ValueError: it is invalid, or too deep.

    The array of a tuple is read after the reader of the whole body has ended, for the reason that
    `sendable` gives."""
    kind = type(value)
    if kind in (list, dict, msgpack.ExtType) and depth >= MAX_DEPTH:
        raise ValueError(TOO_DEEP)
    if kind is list:
        return [received(inner, depth + 1) for inner in value]
    if kind is dict:
        return {
            received(key, depth + 1): received(inner, depth + 1) for key, inner in value.items()
        }
    if kind is msgpack.ExtType:
        values = msgpack.unpackb(value.data, strict_map_key=False) if value.code == TUPLE else None
        if type(values) is not list:
            raise ValueError("it has a value of another version of comity")
        return tuple(received(inner, depth + 1) for inner in values)
    if value is None or kind in (bool, int, float, str, bytes):
        return value
    raise ValueError(f"it has a {kind.__name__}")
