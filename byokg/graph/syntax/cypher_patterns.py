"""Patterns of openCypher: paths, nodes, relationships and their quantifiers."""

from __future__ import annotations

from dataclasses import replace

from byokg.graph.syntax.cypher_expressions import MATCH_MODE, PATH_WORDS, ExpressionParser
from byokg.graph.syntax.tokens import Token
from byokg.graph.syntax.uses import Binding, EdgeUse, End, LabelUse, Name


class PatternParser(ExpressionParser):
    """Reads patterns, and notes what they say of variables."""

    def patterns(self) -> None:
        self.pattern()
        while self.accept(","):
            self.pattern()

    def pattern(self) -> None:
        if self.is_name() and self.ahead() == "=":
            self.forget(self.advance())
            self.advance()
        while self.key in PATH_WORDS or (self.key in ("number", "$") and self.tokens[self.at - 1].key in PATH_WORDS):
            if self.key == "$":
                self.parameter()
            else:
                self.advance()
        if self.key in ("SHORTESTPATH", "ALLSHORTESTPATHS") and self.ahead() == "(":
            self.advance()
            self.advance()
            self.path()
            self.expect(")")
        else:
            self.path()

    def path(self) -> None:
        """Read nodes and relationships in turn, or parenthesised paths with quantifiers between nodes."""
        if self.key != "(":
            raise self.unexpected("expected a pattern such as (a:Label)-[:TYPE]->(b)")
        while self.key == "(":
            if self.path_in_parentheses():
                self.advance()
                self.pattern()
                if self.accept("WHERE"):
                    self.expression()
                self.expect(")")
                self.quantifier()
                continue
            node = self.node()
            while self.at_relationship(self.at):
                node = self.relationship(node)

    def path_in_parentheses(self) -> bool:
        if self.ahead() == "(":
            return True
        if self.is_name(1) and self.ahead(2) == "=":
            return True
        return self.ahead() in PATH_WORDS and (self.ahead(2) in PATH_WORDS or self.ahead(2) in ("(", "number"))

    def at_relationship(self, at: int) -> bool:
        """Say whether ``-[``, ``--``, ``<-[`` or ``<--`` stands here."""
        keys = [token.key for token in self.tokens[at : at + 3]]
        if keys and keys[0] == "<":
            del keys[0]
        return keys[:1] == ["-"] and keys[1:2] in (["-"], ["["])

    def node(self) -> Binding:
        self.expect("(")
        variable = self.element_variable(")")
        names = self.element_labels("node")
        binding = self.bind(variable, Binding("node", names))
        self.element_properties(binding)
        self.expect(")")
        return binding

    def element_variable(self, close: str) -> Token | None:
        following = self.ahead()
        if not self.is_name():
            return None
        if self.key == "WHERE" and following not in (close, ":", "{", "WHERE", "IS", "*", "$"):
            return None
        if self.key == "IS" and self.is_name(1) and following != "WHERE":
            return None
        return self.advance()

    def element_labels(self, kind: End) -> tuple[str, ...]:
        if self.key not in (":", "IS"):
            return ()
        found: list[Name] = []
        certain = self.label_expression(found)
        self.labels += [LabelUse(name, kind) for name in found]
        return tuple(name.text for name in found) if certain else ()

    def element_properties(self, owner: Binding) -> None:
        if self.key == "{":
            self.map(owner)
        elif self.key == "$":
            self.parameter()
        if self.accept("WHERE"):
            self.expression()

    def bind(self, variable: Token | None, binding: Binding) -> Binding:
        if variable is None:
            return binding
        known = self.scope.get(variable.text)
        if known is not None and known.kind == binding.kind:
            binding = replace(binding, names=(*known.names, *(n for n in binding.names if n not in known.names)))
        self.scope[variable.text] = binding
        return binding

    def relationship(self, left: Binding) -> Binding:
        """Read a relationship and the node behind it."""
        inward = self.accept("<")
        self.expect("-")
        types: tuple[Name, ...] = ()
        single = True
        if self.accept("["):
            variable = self.element_variable("]")
            first = len(self.labels)
            names = self.element_labels("edge")
            if names:
                types = tuple(use.name for use in self.labels[first:])
            if self.accept("*"):
                single = False
                if self.key == "number":
                    self.advance()
                if self.accept("..") and self.key == "number":
                    self.advance()
            if variable is not None and not single:
                self.forget(variable)
                variable = None
            self.element_properties(self.bind(variable, Binding("edge", names)))
            self.expect("]")
        self.expect("-")
        outward = self.accept(">")
        single &= not self.quantifier()
        if self.key != "(":
            raise self.unexpected("expected a node such as (b) behind the relationship")
        right = self.node()
        head, tail = (right, left) if inward and not outward else (left, right)
        self.edges.append(EdgeUse(types, head, tail, inward != outward, single))
        return right

    def quantifier(self) -> bool:
        """Take ``{1,3}``, ``+`` or ``*`` behind a relationship or a parenthesised path."""
        if self.key in ("+", "*"):
            self.advance()
            return True
        if not self.accept("{"):
            return False
        first = self.accept("number")
        if not (self.accept(",") or first):
            raise self.unexpected("expected a quantifier such as {1,3}")
        self.accept("number")
        self.expect("}")
        return True

    def match_mode(self) -> None:
        if self.ahead() in MATCH_MODE.get(self.key, ()):
            self.advance()
            self.advance()
            self.accept("BINDINGS")
