"""Shapes of JSON values: one definition checks, reads and writes a value, and gives a JSON Schema.

    USE = Object({
        "verdict": Member(Text(values=("allow", "deny"))),
        "until": Member(Moment("Z"), is_required=False),
    })
    USE.is_valid(value)         True if the value has the shape. Types are exact, as in JSON:
                                `true` is not a number
    USE.schema                  the shape as JSON Schema
    shape.read(value)           a valid value, with times, sets and tuples for texts and lists
    shape.write(value)          the reverse

A JSON Schema cannot check whether a date exists, or that a pattern ends at the end of the text. It
checks everything else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

Check = Callable[[Any], bool]


class Shape:
    """The shape of a value.

    Attributes:
        name: name under `$defs` of a schema, to refer to. "": the schema is written in full where
            it is used.
        description: text for readers of the schema, in the definition `name`. "": none.
        is_valid: returns True if a value has the shape."""

    name: str = ""
    description: str = ""
    is_valid: Check

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema, with references to the named shapes in it."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[Shape, ...]:
        """The shapes in this shape."""
        return ()

    def read(self, value: Any) -> Any:
        """Return the Python value of a valid JSON value."""
        return value

    def write(self, value: Any) -> Any:
        """Return the JSON value of a Python value."""
        return value


def reference(shape: Shape) -> dict[str, Any]:
    """Return the JSON Schema of a shape inside another one."""
    return {"$ref": f"#/$defs/{shape.name}"} if shape.name else shape.schema


def definitions(shape: Shape) -> dict[str, Any]:
    """Return name -> JSON Schema of the named shapes in a shape."""
    schemas: dict[str, Any] = {}
    for part in shape.parts:
        if part.name and part.name not in schemas:
            schemas[part.name] = (
                {"description": part.description} if part.description else {}
            ) | part.schema
        schemas |= {
            name: schema for name, schema in definitions(part).items() if name not in schemas
        }
    return schemas


class Text(Shape):
    """A text. If `values` are given, it is one of them; else `pattern` matches all of it.

    Without both any text is valid."""

    def __init__(self, pattern: str = "", *, values: tuple[str, ...] = ()) -> None:
        self.pattern, self.values = pattern, values
        matches = re.compile(pattern).fullmatch
        if values:
            self.is_valid = lambda value: type(value) is str and value in values
        elif pattern:
            self.is_valid = lambda value: type(value) is str and matches(value) is not None
        else:
            self.is_valid = lambda value: type(value) is str

    @property
    def schema(self) -> dict[str, Any]:
        if self.values:
            return {"enum": list(self.values)}
        return (
            {"type": "string", "pattern": f"^{self.pattern}$"}
            if self.pattern
            else {"type": "string"}
        )


class Count(Shape):
    """A whole number from 0."""

    schema = {"type": "integer", "minimum": 0}  # noqa: RUF012  # it is never changed

    def __init__(self) -> None:
        self.is_valid = lambda value: type(value) is int and value >= 0


class Number(Shape):
    """A number from 0. It may have a fraction."""

    schema = {"type": "number", "minimum": 0}  # noqa: RUF012

    def __init__(self) -> None:
        self.is_valid = lambda value: type(value) in (int, float) and value >= 0


class Truth(Shape):
    """True or false."""

    schema = {"type": "boolean"}  # noqa: RUF012

    def __init__(self) -> None:
        self.is_valid = lambda value: type(value) is bool


class Constant(Shape):
    """A single value."""

    def __init__(self, value: bool | int | None) -> None:  # noqa: FBT001  # any value
        self.value = value
        self.is_valid = lambda other: type(other) is type(value) and other == value

    @property
    def schema(self) -> dict[str, Any]:
        return {"const": self.value}


class Moment(Shape):
    """A date and time in ISO 8601, written with seconds.

    `suffix` is the offset in written values, "Z" or "+00:00". If `is_checked`, a value has to be a
    date and time with an offset. Otherwise every text is valid."""

    schema = {"type": "string", "format": "date-time"}  # noqa: RUF012

    def __init__(self, suffix: str, *, is_checked: bool = True) -> None:
        self.suffix = suffix
        self.is_checked = is_checked
        self.is_valid = _is_moment if is_checked else Text().is_valid

    def read(self, value: str) -> datetime:
        return datetime.fromisoformat(value)

    def write(self, value: datetime) -> str:
        return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", self.suffix)


def _is_moment(value: Any) -> bool:
    if type(value) is not str:
        return False
    try:
        moment = datetime.fromisoformat(value)
        return moment.tzinfo is not None and moment.astimezone(UTC) is not None
    except (ValueError, OverflowError):  # OverflowError: in UTC it is before year 1 or after 9999
        return False


class Nullable(Shape):
    """A text, or null."""

    def __init__(self, shape: Text | Moment) -> None:
        self.shape = shape
        is_valid = shape.is_valid
        self.is_valid = lambda value: value is None or is_valid(value)

    @property
    def schema(self) -> dict[str, Any]:
        return self.shape.schema | {"type": ["string", "null"]}


class Either(Shape):
    """A value of one of several shapes."""

    def __init__(self, *shapes: Shape) -> None:
        self.shapes = shapes
        self.is_valid = lambda value: any(shape.is_valid(value) for shape in shapes)

    @property
    def schema(self) -> dict[str, Any]:
        return {"anyOf": list(map(reference, self.shapes))}

    @property
    def parts(self) -> tuple[Shape, ...]:
        return self.shapes


class Names(Shape):
    """A set, as a list of different texts. It is written in sorted order.

    `pattern` matches each text completely. "": any text."""

    def __init__(self, pattern: str = "", *, name: str = "names") -> None:
        self.pattern, self.name = pattern, name
        is_name = Text(pattern).is_valid
        self.is_valid = lambda value: (
            type(value) is list and all(map(is_name, value)) and len(set(value)) == len(value)
        )

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": Text(self.pattern).schema, "uniqueItems": True}

    def read(self, value: list[str]) -> frozenset[str]:
        return frozenset(value)

    def write(self, value: Iterable[str]) -> list[str]:
        return sorted(value)


class Several(Shape):
    """A list of values of one shape."""

    def __init__(
        self, member: Shape, *, at_least: int = 0, name: str = "", description: str = ""
    ) -> None:
        self.member, self.at_least, self.name, self.description = (
            member,
            at_least,
            name,
            description,
        )
        is_member = member.is_valid
        self.is_valid = lambda value: (
            type(value) is list and len(value) >= at_least and all(map(is_member, value))
        )

    @property
    def schema(self) -> dict[str, Any]:
        at_least = {"minItems": self.at_least} if self.at_least else {}
        return {"type": "array", **at_least, "items": reference(self.member)}

    @property
    def parts(self) -> tuple[Shape, ...]:
        return (self.member,)

    def read(self, value: list[Any]) -> tuple[Any, ...]:
        return tuple(map(self.member.read, value))

    def write(self, value: Iterable[Any]) -> list[Any]:
        return list(map(self.member.write, value))


class Row(Shape):
    """A list with a shape for each index. Only its first value is required."""

    def __init__(self, *members: Shape) -> None:
        self.members = members
        checks = [member.is_valid for member in members]
        self.is_valid = lambda value: (
            type(value) is list
            and 1 <= len(value) <= len(checks)
            and all(check(member) for check, member in zip(checks, value, strict=False))
        )

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "array",
            "prefixItems": list(map(reference, self.members)),
            "minItems": 1,
            "maxItems": len(self.members),
        }

    @property
    def parts(self) -> tuple[Shape, ...]:
        return self.members


class Member(NamedTuple):
    """A member of an object.

    Attributes:
        shape: shape of its value.
        description: for the schema. "": none.
        is_required: False if the member may be missing."""

    shape: Shape
    description: str = ""
    is_required: bool = True

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the member."""
        return ({"description": self.description} if self.description else {}) | reference(
            self.shape
        )


class Object(Shape):
    """An object with these members and no others. They are written in this order."""

    def __init__(
        self, members: Mapping[str, Member], *, name: str = "", description: str = ""
    ) -> None:
        self.members, self.name, self.description = dict(members), name, description
        self.required = frozenset(key for key, member in members.items() if member.is_required)
        checks = {key: member.shape.is_valid for key, member in members.items()}
        keys, required = checks.keys(), self.required
        self.is_valid = lambda value: (
            type(value) is dict
            and keys >= value.keys() >= required
            and all(checks[key](member) for key, member in value.items())
        )

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "required": [key for key, member in self.members.items() if member.is_required],
            "additionalProperties": False,
            "properties": {key: member.schema for key, member in self.members.items()},
        }

    @property
    def parts(self) -> tuple[Shape, ...]:
        return tuple(member.shape for member in self.members.values())

    def read(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: member.shape.read(value[key])
            for key, member in self.members.items()
            if key in value
        }

    def write(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON object with the members that are in `value`."""
        return {
            key: member.shape.write(value[key])
            for key, member in self.members.items()
            if key in value
        }


class Keyed(Shape):
    """An object with any keys, and values of one shape.

    Attributes:
        key: one word for the keys, e.g. "use".
        pattern: regular expression for the whole of each key. "": any key.
        required: keys that have to be present.
        at_least: smallest valid number of keys."""

    def __init__(
        self,
        key: str,
        member: Shape,
        *,
        pattern: str = "",
        required: tuple[str, ...] = (),
        at_least: int = 0,
    ) -> None:
        self.key, self.pattern, self.member, self.required, self.at_least = (
            key,
            pattern,
            member,
            required,
            at_least,
        )
        is_key, is_member, always = Text(pattern).is_valid, member.is_valid, frozenset(required)
        self.has_valid_keys: Check = lambda value: (
            type(value) is dict
            and len(value) >= at_least
            and value.keys() >= always
            and all(map(is_key, value))
        )
        self.is_valid = lambda value: (
            self.has_valid_keys(value) and all(map(is_member, value.values()))
        )

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            **({"required": list(self.required)} if self.required else {}),
            **({"minProperties": self.at_least} if self.at_least else {}),
            **({"propertyNames": {"pattern": f"^{self.pattern}$"}} if self.pattern else {}),
            "additionalProperties": reference(self.member),
        }

    @property
    def parts(self) -> tuple[Shape, ...]:
        return (self.member,)
