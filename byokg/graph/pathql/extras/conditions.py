"""Conditions and arithmetic of SPARQL, on terms and plain values.

Nodes, relations, properties, types and the names in a query are terms, which are equal where their texts are: the IRI,
or the id or label on a graph without IRIs. What cannot be computed (the year of a name, 1 + "a", a variable without a
value) is an error, and a condition that ends in one does not hold, as in SPARQL.

Differs: two literals of different kinds are unequal, which is no error (SPARQL 1.2); a term in the place of a string
stands for its text.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from byokg.errors import PathQueryInvalid, QueryTooLarge
from byokg.graph.pathql.expander import Bound
from byokg.graph.pathql.query import Expression, FunctionCall, LiteralTerm, NameTerm, Variable
from byokg.types import Value


class Undefined(Exception):
    """An expression has no value."""


Row = Mapping[str, Bound]

_FAILURES = (Undefined, OverflowError, ValueError)
"""Exceptions of expressions without a value: the whole part of infinity is an `OverflowError`."""
_LONGEST_TEXT, _LARGEST_NUMBER = 1_000_000, 1 << 4096

_DATE = re.compile(
    r"(-?\d{4,})(?:-(\d\d)(?:-(\d\d))?)?(?:T(\d\d):(\d\d):(\d\d)(\.\d+)?)?(?:Z|([+-])(\d\d):(\d\d))?", re.ASCII
)
_TIMES = frozenset({"date", "dateTime", "gYearMonth"})
"""Datatypes of texts that are compared as moments."""


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
    if not _is_number(value):
        raise Undefined
    return value  # type: ignore[no-any-return]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _bounded(text: str) -> str:
    """Return a text that is no longer than allowed. Raises `QueryTooLarge`."""
    if len(text) > _LONGEST_TEXT:
        raise QueryTooLarge(f"a condition makes a text of more than {_LONGEST_TEXT:,} characters")
    return text


def _cast_moment(value: Any) -> str:
    if isinstance(value, str) and _DATE.fullmatch(value):
        return value
    raise Undefined


def _cast_bool(value: Any) -> bool:
    if value in ("true", "1", 1):
        return True
    if value in ("false", "0", 0):
        return False
    raise Undefined


_FLAGS = frozenset("ims")


def _expression(pattern: Any, flags: Any) -> str:
    """Return a regular expression as RE2 takes it."""
    chosen = _text(flags)
    if not _FLAGS.issuperset(chosen):
        raise Undefined
    return f"(?{''.join(sorted(set(chosen)))}){_text(pattern)}" if chosen else _text(pattern)


def _matches(text: Any, pattern: Any, flags: Any = "") -> bool:
    """Return whether a pattern is found in a text, in time linear in the text: by RE2, which has no look-ahead."""
    import pyarrow.compute as pc

    try:
        return bool(pc.match_substring_regex(pa.scalar(_text(text)), _expression(pattern, flags)).as_py())
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise Undefined from error


def _replaced(text: Any, pattern: Any, new: Any, flags: Any = "") -> str:
    """Return a text with each match of a pattern replaced; `$1` in the replacement is the first group."""
    import pyarrow.compute as pc

    replacement = re.sub(r"\$(\d)", r"\\\1", _text(new).replace("\\", "\\\\"))
    if len(_text(text)) * max(len(replacement), 1) > 100 * _LONGEST_TEXT:
        raise QueryTooLarge(f"a condition makes a text of more than {_LONGEST_TEXT:,} characters")
    try:
        found = pc.replace_substring_regex(pa.scalar(_text(text)), _expression(pattern, flags), replacement)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise Undefined from error
    return _bounded(str(found.as_py()))


def _part(text: Any, start: Any, length: Any = None) -> str:
    first = round(_number(start)) - 1
    last = None if length is None else max(first + round(_number(length)), 0)
    return _text(text)[max(first, 0) : last]


def _before(text: Any, part: Any) -> str:
    before, found, _ = _text(text).partition(_text(part)) if _text(part) else ("", "", "")
    return before if found else ""


def _after(text: Any, part: Any) -> str:
    return _text(text).partition(_text(part))[2] if _text(part) else _text(text)


_TEXT_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "str": _text,
    "string": _text,
    "strlen": lambda text: len(_text(text)),
    "lcase": lambda text: _text(text).lower(),
    "ucase": lambda text: _text(text).upper(),
    "contains": lambda text, part: _text(part) in _text(text),
    "strstarts": lambda text, part: _text(text).startswith(_text(part)),
    "strends": lambda text, part: _text(text).endswith(_text(part)),
    "strbefore": _before,
    "strafter": _after,
    "concat": lambda *texts: _bounded("".join(map(_text, texts))),
    "replace": _replaced,
    "substr": _part,
    "regex": _matches,
}
"""Functions of strings; a term in their place stands for its text."""

_FUNCTIONS: dict[str, Callable[..., Value]] = {
    **_TEXT_FUNCTIONS,
    "year": _date_part(1),
    "month": _date_part(2),
    "day": _date_part(3),
    "hours": _date_part(4),
    "minutes": _date_part(5),
    "seconds": _date_part(6),
    "abs": lambda value: abs(_number(value)),
    "ceil": lambda value: math.ceil(_number(value)),
    "floor": lambda value: math.floor(_number(value)),
    "round": lambda value: math.floor(_number(value) + 0.5),
    "integer": int,
    "int": int,
    "decimal": float,
    "double": float,
    "float": float,
    "date": lambda value: _cast_moment(value)[:10],
    "datetime": _cast_moment,
    "gyear": int,
    "boolean": _cast_bool,
}
_FORMS = frozenset("bound if coalesce now iri uri isiri isuri isblank isliteral isnumeric sameterm".split())
"""Functions that look at their arguments before they have values, or at what kind they are."""
_SIGNS = frozenset("&& || ! = != < <= > >= +- -".split()) | {"in ()"}
"""Operators, none of which can be called as a function: `+-` computes chains, `-` is the sign of one operand."""

_ARGUMENTS = {
    "now": (0, 0),
    "if": (3, 3),
    "concat": (0, None),
    "coalesce": (1, None),
    "in ()": (1, None),
    "&&": (1, None),
    "||": (1, None),
    "+-": (1, None),
    "replace": (3, 4),
    "substr": (2, 3),
    "regex": (2, 3),
    **dict.fromkeys("contains strstarts strends strbefore strafter sameterm = != < <= > >=".split(), (2, 2)),
}
"""The least and most arguments, if not one; None for no bound."""


def check(expression: Expression) -> None:
    """Raise `PathQueryInvalid` for an unknown function, or wrong arguments."""
    if not isinstance(expression, FunctionCall):
        if isinstance(expression, LiteralTerm):
            check_literal(expression)
        return
    name = expression.operator
    if name not in _FUNCTIONS and name not in _FORMS and name not in _SIGNS:
        known = ", ".join(sorted((*_FUNCTIONS, *_FORMS)))
        raise PathQueryInvalid(f"there is no function {name.upper()}; there are {known}")
    least, most = _ARGUMENTS.get(name, (1, 1))
    given = len(expression.arguments)
    if given < least or (most is not None and given > most):
        raise PathQueryInvalid(f"{name.upper()} takes another number of arguments than {given}")
    if name == "bound" and not isinstance(expression.arguments[0], Variable):
        raise PathQueryInvalid("BOUND takes a variable, such as BOUND(?x)")
    place = {"regex": 2, "replace": 3}.get(name, given)
    flags = expression.arguments[place] if place < given else None
    if isinstance(flags, LiteralTerm) and not _FLAGS.issuperset(_text(flags.value)):
        raise PathQueryInvalid(f"{name.upper()} has the flags i, m and s, not {flags.value!r}")
    for argument in expression.arguments:
        check(argument)


def check_literal(literal: LiteralTerm) -> None:
    """Raise `PathQueryInvalid` for a literal with a language tag."""
    if literal.language:
        raise PathQueryInvalid(
            f'"{literal.value}"@{literal.language}: languages are not compared; '
            f'write "{literal.value}", which equals the text in any language'
        )


class ExpressionEvaluator:
    """Computes expressions without EXISTS, which `patterns` answers before."""

    def __init__(self, term: Callable[[NameTerm], Bound], iri: Callable[[str], str]) -> None:
        """Set the readers of the graph.

        Args:
            term: returns the term of a name.
            iri: returns the IRI text of the label of a relation or type.
        """
        self._term, self._iri = term, iri
        self._now = datetime.now(UTC).isoformat(timespec="seconds")

    def holds(self, expression: Expression, row: Row) -> bool:
        """Return whether a condition holds."""
        try:
            return _truth(self.value(expression, row))
        except _FAILURES:
            return False

    def bound(self, expression: Expression, row: Row) -> Bound | None:
        """Return the value of an expression; None if it has none."""
        try:
            return self.value(expression, row)
        except _FAILURES:
            return None

    def value(self, expression: Expression, row: Row) -> Bound:
        """Return the value of an expression. Raises `Undefined`, or another error of a computation."""
        match expression:
            case Variable(name):
                if name not in row:
                    raise Undefined
                return row[name]
            case LiteralTerm(value, datatype):
                return Bound("literal", value, datatype)
            case NameTerm():
                return self._term(expression)
            case FunctionCall(operator, arguments):
                return self._called(operator, arguments, row)
        raise Undefined

    def text(self, bound: Bound) -> str:
        """Return the text of a term or literal, as STR does."""
        return self._iri(str(bound.value)) if bound.kind == "relation" else _text(bound.value)

    def _called(self, name: str, arguments: tuple[Expression, ...], row: Row) -> Bound:
        if name in ("&&", "||"):
            return Bound("literal", self._junction(name == "||", arguments, row))
        if name == "in ()":
            return Bound("literal", self._among(arguments, row))
        if name == "bound":
            return Bound("literal", isinstance(arguments[0], Variable) and arguments[0].name in row)
        if name == "now":
            return Bound("literal", self._now, "dateTime")
        if name == "if":
            return self.value(arguments[1 if _truth(self.value(arguments[0], row)) else 2], row)
        if name == "coalesce":
            found = (self.bound(argument, row) for argument in arguments)
            first = next((bound for bound in found if bound is not None), None)
            if first is None:
                raise Undefined
            return first
        values = [self.value(argument, row) for argument in arguments]
        if name in ("iri", "uri"):
            return Bound("node", self.text(values[0]))
        if name in _SIGNS or name in _FORMS:
            return Bound("literal", self._compared(name, values))
        if name in _TEXT_FUNCTIONS:
            plain: list[Any] = [each.value if each.kind == "literal" else self.text(each) for each in values]
        else:
            plain = [_literal(each) for each in values]
        datatype = {"date": "date", "datetime": "dateTime"}.get(name, "")
        return Bound("literal", _FUNCTIONS[name](*plain), datatype)

    def _compared(self, name: str, values: list[Bound]) -> bool | int | float:
        """Return the result of an operator, or of a test of a kind, on values."""
        match name:
            case "!":
                return not _truth(values[0])
            case "=" | "!=":
                return self._equal(*values) == (name == "=")
            case "sameterm":
                same = all(type(each.value) is type(values[0].value) for each in values)
                datatypes = {each.datatype for each in values} if values[0].kind == "literal" else {""}
                return same and len(datatypes) == 1 and self._equal(*values)
            case "<" | "<=" | ">" | ">=":
                return _ordered(name, *values)
            case "+-":
                return _chained([_literal(each) for each in values])
            case "-":
                return -_number(_literal(values[0]))
            case "isiri" | "isuri":
                return values[0].kind != "literal" and not self.text(values[0]).startswith("_:")
            case "isblank":
                return values[0].kind != "literal" and self.text(values[0]).startswith("_:")
            case "isliteral":
                return values[0].kind == "literal"
        return values[0].kind == "literal" and _is_number(values[0].value)

    def _equal(self, one: Bound, other: Bound) -> bool:
        """Return whether two terms are the same, or two literals have the same value."""
        if one.kind != "literal" or other.kind != "literal":
            return one.kind != "literal" and other.kind != "literal" and self.text(one) == self.text(other)
        if isinstance(one.value, bool) != isinstance(other.value, bool):
            return False
        if "dateTime" in (one.datatype, other.datatype) and one.value != other.value:
            moments = _moment(one), _moment(other)
            return None not in moments and moments[0] == moments[1]
        return one.value == other.value

    def _junction(self, either: bool, arguments: tuple[Expression, ...], row: Row) -> bool:
        """Return the value of && or ||; an error counts only if the other arguments leave the value open."""
        failed = False
        for argument in arguments:
            try:
                if _truth(self.value(argument, row)) == either:
                    return either
            except _FAILURES:
                failed = True
        if failed:
            raise Undefined
        return not either

    def _among(self, arguments: tuple[Expression, ...], row: Row) -> bool:
        """Return the value of IN; an error counts only if no member is equal."""
        value, failed = self.value(arguments[0], row), False
        for argument in arguments[1:]:
            try:
                if self._equal(value, self.value(argument, row)):
                    return True
            except _FAILURES:
                failed = True
        if failed:
            raise Undefined
        return False


def _truth(bound: Bound) -> bool:
    """Return the effective truth value of a literal: numbers but 0, and texts but the empty one, are true."""
    value = bound.value
    if bound.kind != "literal" or (isinstance(value, str) and bound.datatype):
        raise Undefined
    return bool(value) and value == value


def _literal(bound: Bound) -> Value:
    if bound.kind != "literal":
        raise Undefined
    return bound.value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _moment(bound: Bound) -> tuple[int, float] | None:
    """Return the sort key of dates and times: days, and seconds of the day; None for other texts."""
    found = _DATE.fullmatch(bound.value) if isinstance(bound.value, str) else None
    if found is None:
        return None
    year, month, day, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:6])
    # The calendar repeats after 400 years, which are 146,097 days; Python's begins with the year 1.
    turns, year = divmod(year - 1, 400)
    try:
        moment = datetime(year + 1, month or 1, day or 1, hours, minutes, seconds)
    except ValueError:
        return None
    if found[8]:
        offset = timedelta(hours=int(found[9]), minutes=int(found[10]))
        moment += timedelta(days=146_097) + (-offset if found[8] == "+" else offset)
        turns -= 1
    since = moment - datetime(1, 1, 1)
    return since.days + 146_097 * turns, since.seconds + float(found[7] or 0)


_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def _ordered(sign: str, one: Bound, other: Bound) -> bool:
    """Return whether one literal comes before, or after, another."""
    left, right = _literal(one), _literal(other)
    if _is_number(left) != _is_number(right) or isinstance(left, bool) != isinstance(right, bool):
        raise Undefined
    keys: tuple[Any, Any] = left, right
    if isinstance(left, str) and not _TIMES.isdisjoint((one.datatype, other.datatype)):
        keys = _moment(one), _moment(other)
        if None in keys:
            raise Undefined
    return bool(_COMPARISONS[sign](*keys))


def _chained(parts: list[Any]) -> int | float:
    """Compute operands joined by + and -, or by * and /, from the left."""
    value = _number(parts[0])
    for sign, operand in zip(parts[1::2], parts[2::2], strict=True):
        operand = _number(operand)
        if sign == "/" and operand == 0:
            raise Undefined
        value = _ARITHMETIC[sign](value, operand)
        if isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
            raise Undefined
    return value
