"""Conditions and arithmetic of SPARQL, on plain values.

What cannot be computed (the year of a name, 1 + "a", a variable without a value) is an error, and a condition that
ends in one does not hold, as in SPARQL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from byokg.errors import PathQueryInvalid
from byokg.graph.pathql.moves import Bound
from byokg.graph.pathql.query import Exists, Expression, FunctionCall, Group, LiteralTerm, NameTerm, Variable, variables
from byokg.types import Value


class Undefined(Exception):
    """An expression has no value."""


Row = Mapping[str, Bound]

_DATE = re.compile(r"(-?\d{4,})(?:-(\d\d)(?:-(\d\d))?)?(?:T(\d\d):(\d\d):(\d\d).*)?")


def _date_part(place: int) -> Callable[[Any], int]:
    def part(value: Any) -> int:
        if place == 1 and isinstance(value, int) and not isinstance(value, bool):
            return value  # years are whole numbers in graphs
        found = _DATE.fullmatch(value) if isinstance(value, str) else None
        if found is None or found[place] is None:
            raise Undefined
        return int(found[place])

    return part


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Undefined
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _cast_int(value: Any) -> int:
    try:
        return int(value)
    except (ValueError, OverflowError) as error:
        raise Undefined from error


def _cast_float(value: Any) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise Undefined from error


def _cast_date(value: Any) -> str:
    if isinstance(value, str) and _DATE.fullmatch(value):
        return value[:10]
    raise Undefined


def _cast_bool(value: Any) -> bool:
    if value in ("true", "1", 1):
        return True
    if value in ("false", "0", 0):
        return False
    raise Undefined


def _matches(text: Any, pattern: Any, flags: Any = "") -> bool:
    """Tell whether a pattern is found in a text, in time linear in the text: by RE2, which has no look-ahead."""
    import pyarrow.compute as pc

    chosen = "".join(sorted(set(_text(flags)) & set("ims")))
    wanted = f"(?{chosen}){_text(pattern)}" if chosen else _text(pattern)
    try:
        return bool(pc.match_substring_regex(pa.scalar(_text(text)), wanted).as_py())
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise Undefined from error


def _part(text: Any, start: Any, length: Any = None) -> str:
    first = round(_number(start)) - 1
    last = None if length is None else max(first + round(_number(length)), 0)
    return _text(text)[max(first, 0) : last]


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "year": _date_part(1),
    "month": _date_part(2),
    "day": _date_part(3),
    "hours": _date_part(4),
    "minutes": _date_part(5),
    "str": _text,
    "string": _text,
    "strlen": lambda text: len(_text(text)),
    "lcase": lambda text: _text(text).lower(),
    "ucase": lambda text: _text(text).upper(),
    "contains": lambda text, part: _text(part) in _text(text),
    "strstarts": lambda text, part: _text(text).startswith(_text(part)),
    "strends": lambda text, part: _text(text).endswith(_text(part)),
    "concat": lambda *texts: "".join(map(_text, texts)),
    "replace": lambda text, old, new: _text(text).replace(_text(old), _text(new)),
    "substr": _part,
    "regex": _matches,
    "abs": lambda value: abs(_number(value)),
    "ceil": lambda value: math.ceil(_number(value)),
    "floor": lambda value: math.floor(_number(value)),
    "round": lambda value: math.floor(_number(value) + 0.5),
    "integer": _cast_int,
    "int": _cast_int,
    "decimal": _cast_float,
    "double": _cast_float,
    "float": _cast_float,
    "date": _cast_date,
    "datetime": _text,
    "gyear": _cast_int,
    "boolean": _cast_bool,
    "negative": lambda value: -_number(value),
}
_FORMS = frozenset("&& || ! = != < <= > >= in chain bound if coalesce now isiri isuri isliteral isnumeric".split())
"""What looks at its arguments before they have values, or at what kind they are."""


def check(expression: Expression) -> None:
    """Raise `PathQueryInvalid` where a function is not known, or gets a wrong number of arguments."""
    if not isinstance(expression, FunctionCall):
        return
    name = expression.operator
    if name not in _FUNCTIONS and name not in _FORMS:
        known = ", ".join(sorted(each for each in (*_FUNCTIONS, *_FORMS) if each.isalpha() and each != "chain"))
        raise PathQueryInvalid(f"there is no function {name.upper()}; there are {known}")
    least = {"now": 0, "if": 3, "bound": 1, "concat": 0, "coalesce": 0, "in": 1}
    most = {"now": 0, "if": 3, "bound": 1}
    given = len(expression.arguments)
    if name in _FUNCTIONS and name != "concat":
        two = {"contains", "strstarts", "strends", "regex", "substr"}
        least[name] = 3 if name == "replace" else 2 if name in two else 1
        most[name] = 3 if name in ("replace", "regex", "substr") else least[name]
    if given < least.get(name, 1) or given > most.get(name, given):
        raise PathQueryInvalid(f"{name.upper()} takes another number of arguments than {given}")
    for argument in expression.arguments:
        check(argument)


def names_in(expression: Expression) -> Iterator[str]:
    """Yield the names of the variables that an expression reads."""
    match expression:
        case Variable(name):
            yield name
        case FunctionCall(_, arguments):
            for argument in arguments:
                yield from names_in(argument)
        case Exists(pattern):
            yield from variables(pattern)
        case _:
            return


class Conditions:
    """Computes expressions; `exists` tells whether a pattern has a solution that agrees with a row."""

    def __init__(self, node: Callable[[NameTerm], str], exists: Callable[[Group, Row], bool]) -> None:
        self._node = node
        self._exists = exists
        self._now = datetime.now(UTC).isoformat(timespec="seconds")

    def holds(self, expression: Expression, row: Row) -> bool:
        """Tell whether a condition holds."""
        try:
            return self._truth(self.value(expression, row))
        except (Undefined, OverflowError):
            return False

    def bound(self, expression: Expression, row: Row) -> Bound | None:
        """Return the value of an expression; None where it has none."""
        try:
            return self.value(expression, row)
        except (Undefined, OverflowError):
            return None

    def value(self, expression: Expression, row: Row) -> Bound:
        """Return the value of an expression. Raises `Undefined`."""
        match expression:
            case Variable(name):
                if name not in row:
                    raise Undefined
                return row[name]
            case LiteralTerm(value, datatype):
                return Bound("literal", value, datatype)
            case NameTerm():
                return Bound("node", self._node(expression))
            case Exists(pattern, negated):
                return Bound("literal", self._exists(pattern, row) != negated)
            case FunctionCall(operator, arguments):
                return self._called(operator, arguments, row)
        raise Undefined

    def _called(self, name: str, arguments: tuple[Expression, ...], row: Row) -> Bound:
        if name in ("&&", "||"):
            return Bound("literal", self._junction(name == "||", arguments, row))
        if name == "bound":
            return Bound("literal", isinstance(arguments[0], Variable) and arguments[0].name in row)
        if name == "now":
            return Bound("literal", self._now, "dateTime")
        if name == "if":
            return self.value(arguments[1 if self._truth(self.value(arguments[0], row)) else 2], row)
        if name == "coalesce":
            found = (self.bound(argument, row) for argument in arguments)
            first = next((bound for bound in found if bound is not None), None)
            if first is None:
                raise Undefined
            return first
        values = [self.value(argument, row) for argument in arguments]
        if name == "!":
            return Bound("literal", not self._truth(values[0]))
        if name == "in":
            return Bound("literal", any(_equal(values[0], other) for other in values[1:]))
        if name in ("=", "!="):
            return Bound("literal", _equal(*values) == (name == "="))
        if name in ("<", "<=", ">", ">="):
            return Bound("literal", _compared(name, *values))
        if name == "chain":
            return Bound("literal", _chained([each.value for each in values]))
        if name in ("isiri", "isuri"):
            return Bound("literal", values[0].kind != "literal")
        if name == "isliteral":
            return Bound("literal", values[0].kind == "literal")
        if name == "isnumeric":
            return Bound("literal", values[0].kind == "literal" and _is_number(values[0].value))
        datatype = "date" if name == "date" else ""
        return Bound("literal", _FUNCTIONS[name](*(each.value for each in values)), datatype)

    def _junction(self, either: bool, arguments: tuple[Expression, ...], row: Row) -> bool:
        """Return the value of && or ||; an error counts only where the other arguments leave the value open."""
        failed = False
        for argument in arguments:
            try:
                if self._truth(self.value(argument, row)) == either:
                    return either
            except Undefined:
                failed = True
        if failed:
            raise Undefined
        return not either

    @staticmethod
    def _truth(bound: Bound) -> bool:
        if bound.kind != "literal":
            raise Undefined
        return bool(bound.value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(one: Bound, other: Bound) -> bool:
    if (one.kind == "literal") != (other.kind == "literal"):
        return False
    if isinstance(one.value, bool) != isinstance(other.value, bool):
        return False
    return one.value == other.value


def _compared(sign: str, one: Bound, other: Bound) -> bool:
    left: Any = one.value
    right: Any = other.value
    if one.kind != "literal" or other.kind != "literal":
        raise Undefined
    # A year that is a number stands for the dates in it.
    if _is_number(left) != _is_number(right) or isinstance(left, bool) != isinstance(right, bool):
        raise Undefined
    if sign == "<":
        return bool(left < right)
    if sign == "<=":
        return bool(left <= right)
    return bool(left > right if sign == ">" else left >= right)


def _chained(parts: list[Any]) -> int | float:
    """Compute operands joined by + and -, or by * and /, from the left."""
    value = _number(parts[0])
    for sign, operand in zip(parts[1::2], parts[2::2], strict=True):
        operand = _number(operand)
        if sign == "+":
            value += operand
        elif sign == "-":
            value -= operand
        elif sign == "*":
            value *= operand
        elif operand == 0:
            raise Undefined
        else:
            value /= operand
    return value
