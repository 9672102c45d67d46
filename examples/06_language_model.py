"""Ask a language model, record its replies, and replay them without the model.

The scripted model stands for any LangChain chat model, such as `ChatAnthropic(model=…, max_retries=0)`.
"""

import tempfile
from pathlib import Path

from byokg import KnowledgeGraph, atlas
from byokg.linking.parts import Parts
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.llm.reply_store import RecordedReplies
from byokg.pipelines.lean import lean_pipeline
from byokg.types import Question

QUESTION = "What is the capital of the country that the Elbe flows through?"
MODEL = ScriptedChatModel(rules=(Rule("<answers>\nPrague [e1]\nBerlin [e1]\n</answers>"),))

with tempfile.TemporaryDirectory() as folder:
    graph = KnowledgeGraph.build(atlas().graph_source(), Path(folder, "graph"))
    replies = Path(folder, "replies.sqlite")

    with RecordedReplies(replies) as store:
        model = LanguageModel(MODEL, store=store)
        answer = lean_pipeline(Parts(graph.store, model)).run(Question("ask", QUESTION))
        print("asked:", [(item.name, item.id, item.support) for item in answer.items])

    with RecordedReplies(replies, mode="replay") as store:
        replay = LanguageModel(None, model.provider, model.model, model.parameters, store=store)
        answer = lean_pipeline(Parts(graph.store, replay)).run(Question("ask", QUESTION))
        print("replayed:", [item.name for item in answer.items])
