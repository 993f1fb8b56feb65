"""From a method to its result: one path for both eras (server, "Methods")."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from twolane.errors import MethodNotFound
from twolane.server.completion import complete
from twolane.server.methods import call_method
from twolane.server.pagination import paginate
from twolane.server.prompts import get_prompt
from twolane.server.reading import listed_resources, read_resource
from twolane.server.tools import call_tool

if TYPE_CHECKING:
    from twolane.protocol.inputs import InputRequired
    from twolane.server.context import Call
    from twolane.server.server import McpServer

__all__ = ["dispatch"]

_Answer = Coroutine[Any, Any, "dict[str, Any] | InputRequired"]
_key: Callable[[tuple[str, Any]], str] = itemgetter(0)


def dispatch(server: McpServer, call: Call) -> _Answer:
    """
    Serve one request; see :meth:`~twolane.server.servable.Servable.dispatch`.

    A method whose feature is not registered does not exist (S-047). What stays registered but is disabled still
    counts: then the list is empty.
    """
    method = _METHODS.get(call.method)
    return call_method(server, call) if method is None else method(server, call)


async def _tools_list(server: McpServer, call: Call) -> dict[str, Any]:
    _need(server._tools, call)
    return _list_entries(server, call, "tools", server._tools)


async def _prompts_list(server: McpServer, call: Call) -> dict[str, Any]:
    _need(server._prompts, call)
    return _list_entries(server, call, "prompts", server._prompts)


async def _templates_list(server: McpServer, call: Call) -> dict[str, Any]:
    _need(server._templates or server._resources, call)
    return _list_entries(server, call, "resourceTemplates", server._templates)


async def _resources_list(server: McpServer, call: Call) -> dict[str, Any]:
    _need(server._resources or server._templates, call)
    entries = await listed_resources(server, call)
    page, cursor = paginate(call.method, entries, _key, call.params, server.page_size or call.page_size)
    return _listed(server, call, "resources", [descriptor for _, descriptor in page], cursor)


def _list_entries(server: McpServer, call: Call, member: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    shown = [(key, entry) for key, entry in entries.items() if entry.enabled]
    page, cursor = paginate(call.method, shown, _key, call.params, server.page_size or call.page_size)
    if call.era == "modern":
        return _listed(server, call, member, [entry.encoded() for _, entry in page], cursor)
    return _listed(server, call, member, [entry.descriptor() for _, entry in page], cursor)


def _listed(
    server: McpServer, call: Call, member: str, descriptors: Sequence[Any], cursor: str | None
) -> dict[str, Any]:
    result: dict[str, Any] = {member: descriptors}
    if cursor is not None:
        result["nextCursor"] = cursor
    if call.era == "modern":
        # Every page has the scope of the whole list (S-094).
        result["ttlMs"], result["cacheScope"] = server.cache_hint(call.method)
    return result


def _need(registered: Mapping[str, Any], call: Call) -> None:
    if not registered:
        raise MethodNotFound(call.method)


_METHODS: dict[str, Callable[[McpServer, Call], _Answer]] = {
    "completion/complete": complete,
    "prompts/get": get_prompt,
    "prompts/list": _prompts_list,
    "resources/list": _resources_list,
    "resources/read": read_resource,
    "resources/templates/list": _templates_list,
    "tools/call": call_tool,
    "tools/list": _tools_list,
}
