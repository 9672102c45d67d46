"""`byokg ask` and `byokg trace`: an answer with its evidence, and its rounds as a tree."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from byokg.cli.config import read_settings
from byokg.cli.evaluation import open_session
from byokg.cli.options import ServerOptions, expand_records
from byokg.cli.terminal import AsJson, ConfigDir, Words, print_json, stdout
from byokg.cli.terminal import note as tell
from byokg.errors import ConfigError, EntityNotFound
from byokg.graph.paths import follow
from byokg.graph.property_view import node_names
from byokg.graph.store import GraphStore
from byokg.linking.entities import EntityLinker
from byokg.pipelines.loop import ENDED
from byokg.retrieval.verbalize import Hop, names_of, verbalize, verbalize_path
from byokg.text.names import on_one_line
from byokg.types import Answer, EntityId, Evidence, Feedback, LinkedEntity, Mention, PathEvidence, Question
from byokg.types import Path as GraphPath

NO_ANSWER = 1
"""Exit code."""

_ANSWERS = 20
"""Answers listed; the rest is counted."""

_WALKS = 3
"""Answers of a path whose walks are shown; the rest is counted."""

_PATHS = 3
"""Cited paths that are shown walk by walk; further ones are lines, as is all other evidence."""

_LINES = 5
"""Other cited evidence, a line each; the rest is counted."""


def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    words: Words = None,
    config_dir: ConfigDir = None,
    entity: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Node the question is about; may be repeated.")
    ] = None,
    hops: Annotated[int | None, typer.Option(min=1, help="How many edges away the answer is, if known.")] = None,
    language: Annotated[
        str, typer.Option(metavar="CODE", help="Language of the question: en, de, es, zh; else it is detected.")
    ] = "auto",
    trace: Annotated[bool, typer.Option("--trace", help="Show input and results of every stage, as a tree.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer one question and show the evidence.

    byokg ask "Which countries does the Danube flow through?" dataset=atlas

    byokg ask "Who directed Heat?" graph.path=DIR

    byokg ask "Who directed Heat?" graph.path=neo4j://HOST

    Without a language model, an answer's score is the probability that the first one is right; one below 0.5 is marked
    unsure, with the reason, and the next best may follow. pipeline.abstain=0.5 gives no such answers.

    The exit code is 1 if there is no answer.
    """
    if not question.strip():
        raise ConfigError("the question is empty")
    from byokg.llm.retry import set_question

    chosen = [] if language == "auto" else [f"language={language}"]
    settings = read_settings([*_settings_only(words or [], question), *chosen])
    dataset = settings.build("dataset") if settings.options["dataset"] else None
    with open_session(settings, dataset, tell) as session:
        topics = tuple(EntityId(id) for id in entity or ())
        try:
            session.store.nodes(topics)
        except EntityNotFound as error:
            raise ConfigError(_no_such_entity(error, session.entities)) from error
        with set_question("ask"):
            answer = session.pipeline.run(Question("ask", question, topics, hops))
        if as_json:
            print_json(answer_json(question, answer))
        elif trace:
            from byokg.evaluation.records import record_answer

            usage = None if session.llm is None else session.llm.meter.take("ask")
            show_trace(json.loads(record_answer(answer, 0.0, usage).trace), stdout(), session.store)
        else:
            show(answer, session.store, stdout())
    if not answer.items:
        raise typer.Exit(NO_ANSWER)


@expand_records
def trace(
    *,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder that an evaluation wrote.")],
    id: Annotated[str, typer.Argument(metavar="ID", help="Question, as in the data set.")],
    graph: Annotated[
        str | None, typer.Option(metavar="GRAPH", help="Graph of the run, for the names of nodes.")
    ] = None,
    as_json: AsJson = False,
    server: ServerOptions,
) -> None:
    """Show the derivation of a recorded question's answers: rounds, links, evidence, calls of the language model.

    byokg trace runs/mine WebQTest-12
    """
    from byokg.evaluation.records import read_trace
    from byokg.open import use_graph

    record = read_trace(run, id)
    if as_json:
        print_json(record)
    else:
        with ExitStack() as held:
            store: GraphStore | None = None
            if graph is not None:
                settings = server.settings(graph)
                store = held.enter_context(use_graph(graph, **settings))
            show_trace(record, stdout(), store)
        if stages := _stages(run, id):
            stdout().print(Text(stages))


def _stages(run: Path, id: str) -> str:
    """Describe the stages reached by a question's gold answers; empty without gold answers."""
    from byokg.evaluation.records import read_predictions
    from byokg.evaluation.run_folder import read_questions
    from byokg.evaluation.runner import outcome

    example = next((one for one in read_questions(run) if one.id == id), None)
    prediction = next((one for one in read_predictions(run) if one.id == id), None)
    if example is None or prediction is None or not example.answers or prediction.retrieved is None:
        return ""
    found, linked = prediction.retrieved, prediction.linked
    told = [] if linked is None else [f"linked {len(linked.found)} of {len(linked.gold)} topics"]
    told.append(f"retrieved {sum(rank is not None for rank in found.ranks)} of {len(found.ranks)} gold answers")
    told += [f"{word} {sum(its)}" for word, its in (("shown", found.shown), ("cited", found.cited)) if its is not None]
    return f"{', '.join(told)}: {outcome(example, prediction).stage.replace('_', ' ')}"


def _settings_only(words: Sequence[str], question: str) -> Sequence[str]:
    """Refuse a question that was typed without quotes."""
    if words and "=" not in words[0]:
        raise ConfigError(
            f'{words[0]!r} is no setting; put the whole question in quotes: byokg ask "{question} {words[0]} …"'
        )
    return words


def _no_such_entity(error: EntityNotFound, linker: EntityLinker) -> str:
    """Suggest nodes for a name given in place of an id."""
    found = linker.candidates(Mention(error.entity))
    near = "; nodes with such a name: " + ", ".join(f"{entity.id} ({entity.name})" for entity in found)
    return f"--entity {error.entity}: no node has this id{near if found else ''}"


# Answers


def answer_json(question: str, answer: Answer) -> dict[str, Any]:
    """Return the answers with scores, and the rounds as `trace.jsonl` holds them."""
    from byokg.evaluation.records import record_answer

    trace = json.loads(record_answer(answer, seconds=0.0).trace)
    return {
        "question": question,
        "answers": [asdict(item) | {"grounded": item.grounded, "support": item.support} for item in answer.items],
        "note": answer.note,
        **({"translation": answer.translation} if answer.translation else {}),
        "rounds": trace["rounds"],
    }


def show(answer: Answer, store: GraphStore, console: Console) -> None:
    """Print the answers, the linked entities with scores, and the cited evidence."""
    linked = list(dict.fromkeys(entity for one in answer.rounds for entity in one.linked.entities))
    evidence = [item for one in answer.rounds for item in one.evidence]
    found = [item for item in evidence if isinstance(item, PathEvidence)]
    cited = {citation for item in answer.items for citation in item.citations}
    if answer.translation:
        console.print(Text(f"read as: {answer.translation}", "dim"), soft_wrap=True)
    if answer.items:
        _show_answers(answer, console)
        if answer.note:
            console.print(Text(answer.note, "yellow"), soft_wrap=True)
    else:
        console.print(_no_answer(answer, linked), soft_wrap=True)
    if linked:
        console.print()
        for entity in linked:
            console.print(_linked(entity), soft_wrap=True)
    drawn: set[str] = set()
    for item in found:
        ends = set(item.ends)
        answers = [one.id for one in answer.items if one.id in ends and item.id in one.citations and one.id is not None]
        if answers and len(drawn) < _PATHS:
            drawn.add(item.id)
            _show_walks(item, answers, linked, store, console)
    _show_lines([item for item in evidence if item.id in cited - drawn], store, console)
    rest = [item for item in found if item.id not in cited]
    if rest:
        best = max(rest, key=lambda item: item.score)
        noun = "one other path" if len(rest) == 1 else f"{len(rest)} other paths"
        line = verbalize(best, names_of(store, [best], _WALKS), _WALKS)
        console.print()
        _print(f"{noun} considered; the best of them, score {best.score:.1f}: {line}", console, "dim")


def _show_walks(
    item: PathEvidence, answers: Sequence[EntityId], linked: Sequence[LinkedEntity], store: GraphStore, console: Console
) -> None:
    """Print a walk to each of the first answers, as a prompt shows it, and count omitted ends."""
    walks = _walks(item, answers[:_WALKS], linked, store)
    names = node_names(store, list(dict.fromkeys(node for walk in walks for node in walk.nodes)))
    console.print()
    _print(f"evidence {item.id}: a path, score {item.score:.1f}", console)
    for walk in walks:
        _print(f"  {verbalize_path(walk, names)}", console)
    left_out = []
    if more := len(answers) - len(walks):
        left_out.append(f"+{more:,} more {'answer' if more == 1 else 'answers'}")
    if others := len(item.ends) - len(answers):
        left_out.append("one end that is no answer" if others == 1 else f"{others:,} ends that are no answers")
    if item.truncated:
        left_out.append("the search was cut short")
    if left_out:
        _print(f"  ({', '.join(left_out)})", console, "dim")


def _print(text: str, console: Console, style: str = "") -> None:
    """Print text as it is, in one line however long, in the characters of the terminal."""
    console.print(_in_ascii(Text(text, style)) if console.options.ascii_only else Text(text, style), soft_wrap=True)


def _show_lines(evidence: Sequence[Evidence], store: GraphStore, console: Console) -> None:
    """Print the first of the evidence that is not drawn, as a prompt shows it, and count the others."""
    if not evidence:
        return
    names = names_of(store, evidence[:_LINES], _WALKS)
    console.print()
    for item in evidence[:_LINES]:
        _print(f"evidence {item.id}: {verbalize(item, names, _WALKS)}", console)
    if (more := len(evidence) - _LINES) > 0:
        console.print(Text(f"(+{more:,} more cited; all of it: --trace)", "dim"))


def _show_answers(answer: Answer, console: Console) -> None:
    for item in answer.items[:_ANSWERS]:
        line = Text(item.name, "bold green")
        if item.id is not None and item.id != item.name:
            line.append(f"  {item.id}", "not bold dim")
        if answer.rounds and not item.grounded:
            line.append("  (not supported by the graph)", "not bold dim")
        elif item.support == "found" and item.miscited:
            line.append("  (in the evidence, but not in what it cites)", "not bold dim")
        console.print(line, soft_wrap=True)
    if (more := len(answer.items) - _ANSWERS) > 0:
        console.print(Text(f"(+{more:,} more {'answer' if more == 1 else 'answers'}; all of them: --json)", "dim"))


def _no_answer(answer: Answer, linked: Sequence[LinkedEntity]) -> Text:
    if answer.note:
        return Text(f"no answer: {answer.note}" + ("" if linked or answer.unknown else "; name one with --entity ID"))
    if not answer.rounds:
        return Text("no answer: the language model gave none")
    if any(not isinstance(item, Feedback) for one in answer.rounds for item in one.evidence):
        return Text("no answer: nothing that was found answers the question; all of it: --trace")
    if linked:
        return Text("no answer: no path from what was linked fits the question")
    return Text("no answer: nothing in the question names a node of the graph; name one with --entity ID")


def _linked(entity: LinkedEntity) -> Text:
    """Describe the link of a mention and its score."""
    sure = f"{entity.method}, {entity.score:.2f}" if entity.method in ("fuzzy", "dense") else entity.method
    line = Text(f"linked {entity.mention.text!r} to ")
    line.append(entity.name, "bold")
    if entity.id != entity.name:
        line.append(f"  {entity.id}", "dim")
    return line.append(f"  ({sure})")


def _walks(
    item: PathEvidence, answers: Sequence[EntityId], linked: Sequence[LinkedEntity], store: GraphStore
) -> list[GraphPath]:
    """Return one walk to each answer: evidence keeps walks for its first ends only, and answers may be others."""
    kept = {path.end: path for path in item.paths}
    lacking = [end for end in answers if end not in kept]
    if lacking:
        mentions = {entity.mention for entity in linked if entity.id == item.source}
        # Not through what another piece of the question names, unless the answer is to be had no other way.
        avoid = [item.source, *(entity.id for entity in linked if entity.mention not in mentions)]
        walks = follow(store, [item.source], item.relations, avoid=avoid)
        if not set(lacking) <= set(store.ids(walks.ends)):
            walks = follow(store, [item.source], item.relations)
        kept |= {path.end: path for path in walks.paths(store.numbers(lacking))}
    return [kept[end] for end in answers]


# Traces


_LISTED = 8
"""Items of one kind that are listed; the rest is counted."""

_ENDS = 5
"""Ends, or rows, of one item that are listed."""

_ASCII = {"→": "->", "←": "<-", "…": "...", "–": "-", "—": "--"}

_EMPTY: tuple[object, ...] = (None, "", [], {}, ())
"""Empty values in a step's record; numbers are informative also when 0."""

_DIGEST = 8
"""Characters of a digest or key: enough to find it."""


def show_trace(record: Mapping[str, Any], console: Console, store: GraphStore | None = None) -> None:
    """Print a trace.

    Args:
        record: a line of `trace.jsonl`; see `evaluation/records.py`.
        console: where to.
        store: gives the names of nodes; without one those that the trace does not name stand as their ids.
    """
    from byokg.evaluation.report.view import NodeNames

    names = {id: name for id, (name, _) in NodeNames(store, _ENDS).of([record]).items()}
    cited = {citation for answer in record["answers"] for citation in answer["citations"]}
    root = Tree(Text(f"question {record['id']}", "bold"))
    if record.get("translation"):
        root.add(Text(f"read as: {record['translation']}"))
    for one in record["rounds"]:
        _add_round(root, one, names, cited)
    if record.get("calls"):
        calls = root.add(Text("language model", "bold"))
        for number, call in enumerate(record["calls"], start=1):
            shown = f", {len(call['shown'])} lines of evidence shown" if call["shown"] else ""
            reply = f"prompt {call['prompt'][:_DIGEST]}, reply {call['reply'][:_DIGEST]}"
            calls.add(Text(f"{number}. {call['stage']}  ").append(f"{reply}{shown}", "dim"))
    if record.get("rules"):
        root.add(Text.assemble(("rules fired: ", "bold"), ", ".join(record["rules"])))
    answers = root.add(Text("answers" if record["answers"] else "no answer", "bold"))
    _add_listed(answers, record["answers"], _answer)
    if record.get("note"):
        answers.add(Text(record["note"], "yellow"))
    if console.options.ascii_only:
        _tree_in_ascii(root)
    console.print(root)


def _add_round(root: Tree, record: Mapping[str, Any], names: Mapping[EntityId, str], cited: set[str]) -> None:
    from byokg.evaluation.records import read_evidence

    branch = root.add(Text(f"round {record['number'] + 1}", "bold"))
    written = list(_written(record["artifacts"]))
    if written:
        proposed = branch.add("proposed")
        for line in written:
            proposed.add(line)
    links = [*record["linked"]["entities"], *record["linked"]["drafts"]]
    drafts = len(record["linked"]["drafts"])
    if links or record["linked"]["literals"]:
        linked = branch.add("linked")
        marked = [(link, position >= len(links) - drafts) for position, link in enumerate(links)]
        _add_listed(linked, marked, lambda each: _link(*each))
        for literal in record["linked"]["literals"]:
            linked.add(Text(f"{literal['mention']['text']!r} is the {literal['kind']} {literal['value']}"))
    found: dict[str, list[Evidence]] = defaultdict(list)
    for item in map(read_evidence, record["evidence"]):
        found["feedback" if isinstance(item, Feedback) else item.retriever].append(item)
    for step in record["steps"]:
        branch.add(_step(step))
    for retriever, items in found.items():
        count = "1 item" if len(items) == 1 else f"{len(items):,} items"
        _add_listed(branch.add(f"{retriever}: {count}"), items, lambda item: _evidence(item, names, cited))
    if not found and all(step["stage"] != ENDED for step in record["steps"]):
        branch.add(Text("nothing was found", "dim"))


def _add_listed(branch: Tree, items: Sequence[Any], text: Callable[[Any], Text]) -> None:
    """List the first items under a branch, and count the rest."""
    for item in items[:_LISTED]:
        branch.add(text(item))
    if (more := len(items) - _LISTED) > 0:
        branch.add(Text(f"(+{more:,} more)", "dim"))


def _written(artifacts: Mapping[str, Any]) -> Iterator[Text]:
    """Yield a line for each kind of artifact that was written."""
    if artifacts["finished"]:
        yield Text("finished")
    if artifacts["mentions"]:
        yield Text(f"entities: {' | '.join(on_one_line(mention['text']) for mention in artifacts['mentions'])}")
    for path in artifacts["paths"][:_LISTED]:
        hops = [Hop.of(relation) for relation in path["relations"]]
        steps = " / ".join(f"^{hop.label}" if hop.inverse else hop.label for hop in hops)
        yield Text(f"path: {steps}").append(f"  {_score(path['score'])}", "dim")
    if (more := len(artifacts["paths"]) - _LISTED) > 0:
        yield Text(f"(+{more} more paths)", "dim")
    for query in artifacts["queries"]:
        yield Text(f"{query['language']}: {on_one_line(query['text'])}")
    if artifacts["draft_answers"]:
        yield Text(f"draft answers: {' | '.join(map(on_one_line, artifacts['draft_answers']))}")
    if artifacts["bfsql"]:
        yield Text(f"bfsql: {on_one_line(artifacts['bfsql'])}")


def _link(link: Mapping[str, Any], draft: bool) -> Text:
    mention = link["mention"]["text"]
    line = Text(f"{'draft ' if draft else ''}{mention!r} to ").append(on_one_line(link["name"]), "bold")
    if link["id"] != link["name"]:
        line.append(f"  {link['id']}", "dim")
    return line.append(f"  ({link['method']}, {_score(link['score'])})", "dim")


def _step(step: Mapping[str, Any]) -> Text:
    parts = [_noted(part) for part in (step["given"], step["got"])]
    return Text(f"{step['stage']}  ").append(on_one_line(" → ".join(part for part in parts if part)), "dim")


def _noted(record: Mapping[str, Any]) -> str:
    """Format a step's input or outcome, without empty values."""
    return "; ".join(f"{key}: {_noted_value(value)}" for key, value in record.items() if value not in _EMPTY)


def _noted_value(value: object) -> str:
    if isinstance(value, Mapping):
        return f"({_noted(value)})"
    if isinstance(value, list | tuple):
        return " | ".join(map(_noted_value, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _evidence(item: Evidence, names: Mapping[EntityId, str], cited: set[str]) -> Text:
    score = "" if isinstance(item, Feedback) else f" {_score(item.score)}"
    line = Text(item.id, "bold green" if item.id in cited else "bold").append(f"{score}  ", "not bold dim")
    return line.append(verbalize(item, names, _ENDS), "not bold default")


def _answer(answer: Mapping[str, Any]) -> Text:
    line = Text(on_one_line(answer["name"]), "bold green")
    if answer["id"] is not None and answer["id"] != answer["name"]:
        line.append(f"  {answer['id']}", "not bold dim")
    return line.append(f"  {_ranges(answer['citations']) or 'not grounded'}", "not bold default")


def _in_ascii(text: Text) -> Text:
    """Return text with arrows and dashes in ASCII."""
    for character, shown in _ASCII.items():
        text.plain = text.plain.replace(character, shown)
    return text


def _tree_in_ascii(tree: Tree) -> None:
    tree.label = _in_ascii(tree.label if isinstance(tree.label, Text) else Text(str(tree.label)))
    for child in tree.children:
        _tree_in_ascii(child)


def _ranges(ids: Sequence[str]) -> str:
    """Write ids of evidence with runs of numbers joined: `e1–e4, e7`."""
    numbers = sorted({int(id.removeprefix("e")) for id in ids})
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return ", ".join(f"e{first}" if first == last else f"e{first}–e{last}" for first, last in runs)


def _score(value: float) -> str:
    return f"{value:.2f}"
