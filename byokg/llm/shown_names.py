"""Names of the prompt, found in a reply, so that no reader takes them apart.

`Unknown`, `Sorry, Wrong Number` and `Crosby, Stills, Nash & Young` are names and look like something else. Given the
names in the prompt, a reader takes a line for one of them if its bytes allow that: each name found is
replaced by one opaque word before the line is taken apart, and put back at the end.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from byokg.llm.reply_blocks import unescape_text
from byokg.text.names import on_one_line

_IN_BRACKETS = r"[\[(【{<（｛［〔][^\[\](){}<>【】（）｛｝［］〔〕\n]{1,120}[\])】}>）｝］〕]"
_HEAD = re.compile(
    rf"\s+|</?[A-Za-z][\w-]{{0,20}}\s?/?>|(?=.[^\])】]{{0,40}}\d|\[[xX✓✔ ]\]){_IN_BRACKETS}|"
    rf"[eE]\d{{1,5}}(?=[:\s])|\d{{1,3}}(?=[.):、．]|\ufe0f?\u20e3|\s*\|)|"
    r"(?:[a-zA-Z]|[ivx]{1,5})(?=[.)]\s)|[一二三四五六七八九十](?=[、．.)）])|"
    r"(?i:(?:the\s+)?(?:(?:final|correct|draft|possible)\s+)?(?:answers?|entity|name)\s*\d{0,2}(?:\s+(?:is|are|was|were)\b|(?=\s*[:：=])))|"
    r"\\\w+(?=\{)|[^\w\s]"
)
"""One possible piece before a name: a mark, a bullet, a number, a label, a citation, a tag."""
_TAIL = re.compile(
    rf"(?:\s+|</?[A-Za-z][\w-]{{0,20}}\s?/?>|{_IN_BRACKETS}|"
    r"(?<![\w])[eE]\d{1,5}|(?<=[\W])(?:and|\d{1,3}|lines?|facts?|evidence|sources?|see|from|per)|[¹²³⁴-⁹⁰]|[^\w\s])$"
)
"""One possible piece behind a name: a mark, a citation and its introduction, a remark in brackets, a tag."""
_REMARK = re.compile(r"\s[—–-]\s(?=[a-z])|:\s(?=[a-z])")
_BETWEEN = re.compile(r"\s?(?:[;,/|+]|&|\s(?:and|or)\s|(?<!-)-+>|→|<-++\s|←)\s?")
_NEXT = re.compile(rf"\s*(?:{_IN_BRACKETS}\s*){{0,4}}(?:[,;|]|&\s|(?:and|or)\s)\s*(?=\S)")
"""Separator between a name, with its citations, and another one."""
_PIECES = 24
"""Pieces on either side of a name."""
_LONGEST_PIECE = 128
_PARTS, _LOOKED_UP, _SLACK = 4096, 6_000, 40
"""Limits: separators in a line that lists names, parts of such lines per reply, and characters around one name of
them."""
_OPEN, _ZERO, _CLOSE = 0x10400, 0x10410, 0x10427
"""Capitals of a script that no reply is written in: a word of them is a name as any other to a reader."""
_WORD = re.compile(f"{chr(_OPEN)}([{chr(_ZERO)}-{chr(_ZERO + 9)}]+){chr(_CLOSE)}")
_AROUND = " \t\r.*_`\"'-<>[]()"
HIDDEN = f"{chr(_OPEN)}[{chr(_ZERO)}-{chr(_ZERO + 9)}]+{chr(_CLOSE)}"
"""Form of a hidden name, as a regular expression."""
_SCRIPT = re.compile("[\U00010400-\U0001044f]")


class ShownNames:
    """The names that a reply may copy.

    A name is found whatever its spaces, its Unicode form and characters that do not show, as prompts write it
    (`on_one_line`), and with its escapes resolved; it is always given back as it was given here.

    Args:
        names: the names, such as those of the nodes and values in the evidence of a prompt; of two that look the same
            the first counts.
    """

    def __init__(self, names: Iterable[str]) -> None:
        given = tuple(dict.fromkeys(names))
        self._names: dict[str, str] = {}
        for name in given:
            self._names.setdefault(_key(name), name)
        for name in given:
            for text in (on_one_line(name), unescape_text(name)):
                if text != name:
                    self._names.setdefault(_key(text), name)
        self._names.pop("", None)
        self._longest: dict[str, int] = {}
        for key in self._names:
            self._longest[_first(key)] = max(self._longest.get(_first(key), 0), len(key))
        self._longest_of_all = max(self._longest.values(), default=0)

    def __len__(self) -> int:
        return len(self._names)

    def of(self, text: str) -> str | None:
        """Return the given name that a text is; None if it is none."""
        return self._names.get(_key(text)) if self._names else None

    def longest(self, line: str, start: int) -> int:
        """Return the greatest length of a name at a place, by its first word; 0 for none."""
        if not line[start : start + _LONGEST_FIRST].isascii():
            return self._longest_of_all
        return self._longest.get(_first(line, start), 0)

    def find(self, line: str) -> tuple[int, int, str] | None:
        """Return the place of the longest name that a line can be read as, and the name; None if there is none.

        Before and behind it stand only pieces that a reader removes: marks, a number, citations.
        """
        if not self._names or not line.strip():
            return None
        starts = [
            start for start in _starts(line) if not line[start : start + 1].isspace() and self.longest(line, start)
        ]
        if not starts:
            return None
        ends = [at for at in _ends(line) if at and not line[at - 1].isspace()]
        longest = 2 * self._longest_of_all + _SLACK  # with invisible characters
        spans = [(start, end) for start in starts for end in ends if start < end <= start + longest]
        for start, end in sorted(spans, key=lambda span: (span[0] - span[1], _counts(line, span[1]), span)):
            written = line[start:end]
            if (name := self.of(written)) is not None:
                end -= len(written) - len(written.rstrip())
                return start, end, name
        return None


def _counts(line: str, end: int) -> bool:
    """True if a name that ends here may be the number of a line: of `1. 3`, both shown, the name is 3."""
    return line[end - 1].isalnum() and line[end : end + 1] in (".", ")", ":") and bool(line[end + 1 :].strip())


_WORDS_READ, _WORDS_OF_NAME = 64, 16
_STOPS = "?!.,;:"


def question_names(question: str) -> ShownNames:
    """Return possible names in a question: any few words in a row, without the stop behind them."""
    words = question.split()[:_WORDS_READ]
    spans = [
        " ".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, min(start + _WORDS_OF_NAME, len(words)) + 1)
    ]
    return ShownNames(dict.fromkeys(text for span in spans for text in (span, span.rstrip(_STOPS))))


class Hiding:
    """Hides shown names in the texts of one reply, and puts them back.

    Args:
        names: the names; None hides nothing.
        reserved: texts that mean something else in this reply, such as FINISH.
    """

    def __init__(self, names: ShownNames | None, reserved: Iterable[str] = ()) -> None:
        self._known = names if names else None
        self._reserved = frozenset(reserved)
        self._hidden: list[str] = []
        self._left = _LOOKED_UP

    def hide(self, text: str) -> str:
        """Return a text with a word of its own in the place of each name that a line, or its list, can be read as."""
        if self._known is None or _SCRIPT.search(text) is not None:
            return text
        return "\n".join(map(self._line, text.split("\n")))

    def restore(self, text: str) -> str:
        """Return a text with the names in the place of their words."""
        return _WORD.sub(self._restore_name, text) if self._hidden else text

    def _restore_name(self, word: re.Match[str]) -> str:
        place = int("".join(str(ord(digit) - _ZERO) for digit in word[1]))
        return self._hidden[place] if place < len(self._hidden) else word[0]

    def _word(self, name: str) -> str:
        self._hidden.append(name)
        return f"{chr(_OPEN)}{''.join(chr(_ZERO + int(digit)) for digit in str(len(self._hidden) - 1))}{chr(_CLOSE)}"

    def _line(self, line: str) -> str:
        if self._known is None or (self._reserved and line.strip(_AROUND) in self._reserved):
            return line
        if "|" in line and "-" in line and _is_table_rule(line):
            return line
        written = []
        while (found := self._known.find(line)) is not None:
            following = _NEXT.match(line, found[1])
            end = found[1] if following is None else following.end()
            written += [line[: found[0]], self._word(found[2]), line[found[1] : end]]
            line = line[end:]
            if following is None:
                return "".join([*written, line])
        return "".join([*written, self._listed(line, self._known)])

    def _listed(self, line: str, known: ShownNames) -> str:
        """Hide the names in a line that lists them, from the left the longest at each place."""
        gaps = [(found.start(), found.end()) for found in _BETWEEN.finditer(line)]
        if not 0 < len(gaps) < _PARTS:
            return line
        begins, ends = [0, *(end for _, end in gaps)], [*(start for start, _ in gaps), len(line)]
        written, place, copied = [], 0, 0
        while place < len(begins):
            begin = begins[place]
            longest = max(known.longest(line, begin + start) for start in _starts(line[begin : begin + _SLACK]))
            far = bisect_right(ends, begin + longest + _SLACK) if longest else 0
            for last in reversed(range(place, min(far, place + self._left))):
                self._left -= 1
                found = known.find(line[begin : ends[last]])
                if found is not None:
                    written += [line[copied : begin + found[0]], self._word(found[2])]
                    copied = begin + found[1]
                    place = bisect_right(begins, copied) - 1
                    break
            place += 1
        return "".join([*written, line[copied:]])


def _is_table_rule(line: str) -> bool:
    """True for the line between a table's head and its rows, of two cells or more; `---` may be a name elsewhere."""
    cells = [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
    return len(cells) > 1 and all(cell and set(cell) <= {"-", ":"} for cell in cells)


_LONGEST_FIRST = 40
_FIRST = re.compile(rf"\w{{1,{_LONGEST_FIRST}}}|.", re.DOTALL)


def _first(text: str, start: int = 0) -> str:
    """Return the first word of a text, or its first mark."""
    found = _FIRST.match(text, start)
    return "" if found is None else found[0]


def _key(text: str) -> str:
    """Return what two texts have in common that look the same."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        text = "".join(each for each in text if unicodedata.category(each) != "Cf")
    return " ".join(text.split())


def _reach(first: int, following: Callable[[int], Sequence[int]]) -> list[int]:
    """Return a place in a line and those reached from it, at most `_PIECES` or a few more."""
    found, place = [first], 0
    while place < len(found) < _PIECES:
        found += [at for at in dict.fromkeys(following(found[place])) if at not in found]
        place += 1
    return found


def _starts(line: str) -> list[int]:
    """Return the possible starts of a name in a line: behind pieces of any kind, and behind single marks."""

    def following(start: int) -> list[int]:
        piece = _HEAD.match(line, start)
        ends = [] if piece is None else [piece.end()]
        return [*ends, start + 1] if line[start : start + 1] and not line[start].isalnum() else ends

    return _reach(0, following)


def _ends(line: str) -> list[int]:
    """Return the possible ends of a name in a line: before pieces of any kind, before single marks, before a remark."""

    def following(end: int) -> list[int]:
        begin = max(0, end - _LONGEST_PIECE)
        piece = _TAIL.search(line[begin:end])
        starts = [] if piece is None else [begin + piece.start()]
        return [*starts, end - 1] if end and not line[end - 1].isalnum() else starts

    return [*_reach(len(line), following), *(remark.start() for remark in list(_REMARK.finditer(line))[:_PIECES])]
