"""The tools over a graph for a LangChain chat model or agent."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from byokg.errors import ByokgError, RequestInvalid
from byokg.graph.bfsql.request import problems
from byokg.graph.bfsql.response import compact
from byokg.retrieval.graph_tools import GraphTools, Tool


def langchain_tools(tools: GraphTools) -> list[BaseTool]:
    """Return the tools as LangChain has them: each answers with JSON, or with a text that says what went wrong."""
    return [_langchain_tool(tool) for tool in tools.tools.values()]


def _langchain_tool(tool: Tool) -> BaseTool:
    def run(**arguments: Any) -> str:
        try:
            return compact(tool.run(tool.arguments.model_validate(arguments)))
        except ByokgError as error:
            raise ToolException(str(error)) from error

    def explain(error: Any) -> str:
        return str(RequestInvalid(problems(tool.arguments, error)))

    return StructuredTool.from_function(
        func=run,
        name=tool.name,
        description=tool.description,
        args_schema=tool.arguments,
        infer_schema=False,
        handle_tool_error=True,
        handle_validation_error=explain,
    )
