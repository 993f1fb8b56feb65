"""Listing and reading resources (server/resources)."""

from __future__ import annotations

import inspect
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from twolane.errors import InvalidParams, MethodNotFound, ResourceNotFound, ServerOutputError
from twolane.protocol.inputs import InputRequired
from twolane.protocol.message import EncodeError, encode
from twolane.server.caching import NO_CACHE
from twolane.server.execute import run_function, run_handler
from twolane.server.metadata import is_model, plain, wire

if TYPE_CHECKING:
    from twolane.server.context import Call
    from twolane.server.resources import RegisteredResource, RegisteredTemplate
    from twolane.server.server import McpServer

__all__ = ["ResourceContent", "listed_resources", "read_resource"]

_ListEntry = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class ResourceContent:
    """
    One piece of a resource's content, for handlers that return several or that set more than text.

    Args:
        content: a string, bytes, or any JSON value.
        mime_type: its type; the resource's own, or what fits *content*, by default.
        uri: the URI of a part; the requested one by default.
        meta: sent as ``_meta``.
    """

    content: Any
    mime_type: str | None = None
    uri: str | None = None
    meta: Mapping[str, Any] | None = None


async def read_resource(server: McpServer, call: Call) -> dict[str, Any] | InputRequired:
    """
    Answer ``resources/read``: fixed resources first, then templates in the order of their registration.

    A handler that returns None says that there is no such resource (S-106).
    """
    if not server._resources and not server._templates:
        raise MethodNotFound(call.method)
    uri = call.params.get("uri")
    if type(uri) is not str or not uri:
        raise InvalidParams("resources/read needs the URI of a resource: params.uri must be a string")
    entry, arguments = _find(server, uri)
    result = await run_handler("Resource", entry, arguments, call, partial(_contents, entry, uri))
    if not isinstance(result, InputRequired):
        own = result.pop("ttlMs", None), result.pop("cacheScope", None)
        if call.era == "modern":
            ttl, scope = entry.hint(server.cache_hint(call.method))
            hint = ttl if own[0] is None else own[0], own[1] or scope
            # What depends on the client's input is nobody else's, and stale at once (server/utilities/caching).
            if call.retried or call.input_responses or call.request_state is not None:
                hint = NO_CACHE
            result["ttlMs"], result["cacheScope"] = hint
    return result


def _find(server: McpServer, uri: str) -> tuple[RegisteredResource | RegisteredTemplate, dict[str, Any]]:
    resource = server._resources.get(uri)
    if resource is not None and resource.enabled:
        return resource, {}
    for template in server._templates.values():
        if template.enabled:
            arguments = template.match(uri)
            if arguments is not None:
                return template, arguments
    raise ResourceNotFound(uri)


def _contents(entry: RegisteredResource | RegisteredTemplate, uri: str, value: Any) -> dict[str, Any]:
    """Turn what a handler returned into the result."""
    if value is None:
        raise ResourceNotFound(uri)
    if is_model(value):
        dumped = wire(value)
        if isinstance(dumped.get("contents"), list):
            return _result(value, dumped)
        if isinstance(dumped.get("uri"), str) and ("text" in dumped or "blob" in dumped):
            return {"contents": [dumped]}
    if isinstance(value, list | tuple) and value and all(_is_content(item) for item in value):
        return {"contents": [_content(entry, uri, item) for item in value]}
    return {"contents": [_content(entry, uri, value)]}


def _result(value: Any, dumped: dict[str, Any]) -> dict[str, Any]:
    """A whole result; cache hints count only where the handler set them."""
    dumped.pop("resultType", None)
    for field, member in (("ttl_ms", "ttlMs"), ("cache_scope", "cacheScope")):
        if field not in value.model_fields_set:
            dumped.pop(member, None)
    return dumped


def _is_content(item: Any) -> bool:
    if isinstance(item, ResourceContent):
        return True
    return is_model(item) and hasattr(item, "uri") and (hasattr(item, "text") or hasattr(item, "blob"))


def _content(entry: RegisteredResource | RegisteredTemplate, uri: str, value: Any) -> dict[str, Any]:
    if isinstance(value, ResourceContent):
        piece = value
        value = piece.content
    elif _is_content(value):
        return wire(value)
    else:
        piece = ResourceContent(value)
    if isinstance(value, str):
        kind, body = "text/plain", {"text": value}
    elif isinstance(value, bytes | bytearray | memoryview):
        kind, body = "application/octet-stream", {"blob": b64encode(value).decode()}
    else:
        kind, body = "application/json", {"text": _json(entry, value)}
    content: dict[str, Any] = {"uri": piece.uri or uri, "mimeType": piece.mime_type or entry.mime_type or kind, **body}
    if piece.meta is not None:
        content["_meta"] = dict(piece.meta)
    return content


def _json(entry: RegisteredResource | RegisteredTemplate, value: Any) -> str:
    try:
        return encode(_plain(value)).decode()
    except EncodeError as exc:
        raise ServerOutputError(
            f"Resource {entry.name} returned {type(value).__name__}, which has no JSON form"
        ) from exc


def _plain(value: Any) -> Any:
    """Return *value* with the pydantic models in it as plain values; fields that are None stay."""
    if is_model(value):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


async def listed_resources(server: McpServer, call: Call) -> list[_ListEntry]:
    """Return every resource as (URI, descriptor): the fixed ones, then what the templates list."""
    modern = call.era == "modern"
    entries: list[_ListEntry] = [
        (uri, resource.encoded() if modern else resource.descriptor())
        for uri, resource in server._resources.items()
        if resource.enabled
    ]
    for template in server._templates.values():
        if template.enabled and template.template.list is not None:
            name = f"list {template.name}"
            bind = partial(_with_context, template.template.list, call)
            entries += await run_function("Resource", name, bind, call, partial(_listed, template, modern))
    return entries


def _with_context(listing: Callable[..., Any], call: Call) -> Callable[[], Any]:
    """Bind the context if *listing* asks for one argument."""
    try:
        parameters = inspect.signature(listing).parameters.values()
    except (TypeError, ValueError):
        return listing
    if any(item.default is item.empty and item.kind < item.VAR_POSITIONAL for item in parameters):
        return partial(listing, call.context)
    return listing


def _listed(template: RegisteredTemplate, modern: bool, value: Any) -> list[_ListEntry]:
    if value is None:
        return []
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ServerOutputError(f"The list of {template.name} must return resources in a list")
    entries: list[_ListEntry] = []
    for item in value:
        resource = plain(item)
        if not isinstance(resource, Mapping) or not isinstance(resource.get("uri"), str):
            raise ServerOutputError(f"The list of {template.name} returned something that is no resource with a uri")
        descriptor = {**resource, "name": resource.get("name", resource["uri"])}
        if template.mime_type is not None:
            descriptor.setdefault("mimeType", template.mime_type)
        try:
            # Encoded here even for old clients: a value without JSON form is this list's fault.
            encoded = encode(descriptor)
        except EncodeError as exc:
            raise ServerOutputError(f"The list of {template.name} returned a resource without JSON form") from exc
        entries.append((resource["uri"], orjson.Fragment(encoded) if modern else descriptor))
    return entries
