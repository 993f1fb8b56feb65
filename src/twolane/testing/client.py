"""The client: the protocol over one in-process application."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp

from twolane.protocol.classify import NAMED_METHODS
from twolane.protocol.envelope import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from twolane.protocol.headers import encode_value
from twolane.protocol.message import encode
from twolane.protocol.revisions import LATEST_LEGACY, MODERN, Era, is_modern_date
from twolane.testing.answers import Answer
from twolane.testing.http import HeaderChanges, HttpTestClient
from twolane.testing.streams import ListenStream, MessageStream

__all__ = ["McpTestClient"]

_CLIENT_INFO: Mapping[str, Any] = {"name": "twolane-test-client", "version": "1.0.0"}


class McpTestClient(HttpTestClient):
    """
    An MCP client for tests, over the ASGI face of an application.

    Entering it runs the application's lifespan, once for all clients that are entered within the first one. Without
    that it works too, for applications that need none::

        async with McpTestClient(app, capabilities={"elicitation": {}}) as client:
            tools = (await client.list_tools()).result["tools"]

    Args:
        app: the ASGI application: a handler, or what holds one.
        path: the path of the endpoint.
        headers: sent with every request, for example ``{"Authorization": "Bearer ..."}``.
        client_info: what the client calls itself; None leaves it out.
        capabilities: what the client declares with every request, for example ``{"elicitation": {"form": {}}}``.
        revision: the protocol revision. With one of 2025 or before, requests are sent without the modern envelope.
        base_url: scheme and Host of the requests.
        server: the socket that the request arrives on, as (address, port). The Host check depends on it.
        client: the address that the request comes from.
        scope: further members of the ASGI scope, such as ``user`` and ``auth``, which authentication middleware sets.
        timeout: seconds that each answer and each message is waited for.
        run_lifespan: whether entering the client runs the application's lifespan.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        path: str = "/mcp",
        headers: Mapping[str, str | None] | None = None,
        client_info: Mapping[str, Any] | None = _CLIENT_INFO,
        capabilities: Mapping[str, Any] | None = None,
        revision: str = MODERN[0],
        base_url: str = "http://127.0.0.1:8000",
        server: tuple[str, int] = ("127.0.0.1", 8000),
        client: tuple[str, int] = ("127.0.0.1", 50000),
        scope: Mapping[str, Any] | None = None,
        timeout: float = 5.0,
        run_lifespan: bool = True,
    ) -> None:
        super().__init__(
            app,
            path=path,
            headers=headers,
            base_url=base_url,
            server=server,
            client=client,
            scope=scope,
            timeout=timeout,
            run_lifespan=run_lifespan,
        )
        self._client_info = client_info
        self._capabilities = capabilities or {}
        self._revision = revision
        self._ids = itertools.count(1)

    # -- methods of the protocol -------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        headers: HeaderChanges | None = None,
        capabilities: Mapping[str, Any] | None = None,
        request_id: int | str | None = None,
        era: Era | None = None,
    ) -> Answer:
        """
        Call any method and wait for the whole answer::

            answer = await client.request("prompts/get", {"name": "review"}, headers={"Mcp-Name": "other"})
            assert answer.status == 400

        Args:
            method: the JSON-RPC method.
            params: its parameters, without ``_meta``.
            meta: goes into ``_meta``, over the envelope: ``{"progressToken": 1}``, or another protocol version.
            headers: changes to the usual headers; None as a value takes one out. A sequence of pairs is sent as it is.
            capabilities: instead of the client's own.
            request_id: a number of its own by default.
            era: ``"legacy"`` sends the request as a client of 2025 does, ``"modern"`` as one of 2026-07-28.

        Raises:
            TimeoutError: no answer came in time. The application has been told that the client left.
        """
        async with self.stream(
            method,
            params,
            meta=meta,
            headers=headers,
            capabilities=capabilities,
            request_id=request_id,
            era=era,
        ) as stream:
            return await stream.answer()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        param_headers: Mapping[str, str | int | bool] | None = None,
        input_responses: Mapping[str, Any] | None = None,
        request_state: str | None = None,
        progress_token: int | str | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        era: Era | None = None,
    ) -> Answer:
        """
        Call a tool.

        A second round answers what the first one asked for::

            first = await client.call_tool("book", {"table": 4}, capabilities={"elicitation": {}})
            assert first.result["resultType"] == "input_required"
            second = await client.call_tool(
                "book",
                {"table": 4},
                capabilities={"elicitation": {}},
                input_responses={"confirm": {"action": "accept", "content": {"sure": True}}},
                request_state=first.result.get("requestState"),
            )

        Args:
            name: the tool.
            arguments: its arguments.
            param_headers: the ``Mcp-Param-*`` headers of arguments that the tool mirrors into headers, by the name of
                their ``x-mcp-header``: ``{"Region": "eu"}`` sends ``Mcp-Param-Region: eu``.
            input_responses: the answers to the last round, by their keys.
            request_state: the ``requestState`` of the last round.
            progress_token: asks for progress; it comes in ``answer.notifications``.
            meta: as for :meth:`request`.
            headers: as for :meth:`request`.
            capabilities: as for :meth:`request`.
            era: as for :meth:`request`.
        """
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments or {})}
        if input_responses is not None:
            params["inputResponses"] = dict(input_responses)
        if request_state is not None:
            params["requestState"] = request_state
        mirrored = {f"Mcp-Param-{key}": _header_text(value) for key, value in (param_headers or {}).items()}
        if progress_token is not None:
            meta = {"progressToken": progress_token, **(meta or {})}
        return await self.request(
            "tools/call", params, meta=meta, headers={**mirrored, **(headers or {})}, capabilities=capabilities, era=era
        )

    async def list_tools(self, cursor: str | None = None, **options: Any) -> Answer:
        """List the tools, one page: ``answer.result["tools"]``. Takes the options of :meth:`request`."""
        return await self.request("tools/list", None if cursor is None else {"cursor": cursor}, **options)

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None, **options: Any) -> Answer:
        """Get a prompt: ``answer.result["messages"]``. Takes the options of :meth:`request`."""
        return await self.request("prompts/get", {"name": name, "arguments": dict(arguments or {})}, **options)

    async def read_resource(self, uri: str, **options: Any) -> Answer:
        """Read a resource: ``answer.result["contents"]``. Takes the options of :meth:`request`."""
        return await self.request("resources/read", {"uri": uri}, **options)

    async def discover(self, **options: Any) -> Answer:
        """Ask what the server is and offers (server/discover). Takes the options of :meth:`request`."""
        return await self.request("server/discover", **options)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        headers: HeaderChanges | None = None,
        era: Era | None = None,
    ) -> Answer:
        """Send a notification. A server accepts it with the status 202 and no body."""
        modern = self._is_modern(era)
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        usual = {"MCP-Protocol-Version": self._version(era), **({"Mcp-Method": method} if modern else {})}
        return await self.post(encode(message), headers if _exact(headers) else {**usual, **dict(headers or {})})

    # -- streams -----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        headers: HeaderChanges | None = None,
        capabilities: Mapping[str, Any] | None = None,
        request_id: int | str | None = None,
        era: Era | None = None,
    ) -> AsyncIterator[MessageStream]:
        """
        Call a method and read its messages as they come. Leaving early is a client that disconnects::

            async with client.stream("tools/call", {"name": "slow"}, meta={"progressToken": 1}) as stream:
                progress = await stream.next()

        Takes the arguments of :meth:`request`.
        """
        modern = self._is_modern(era)
        named = NAMED_METHODS.get(method)
        filled = dict(params or {})
        usual = {"MCP-Protocol-Version": self._version(era)}
        if modern:
            filled["_meta"] = {**self._envelope(capabilities), **(meta or {})}
            usual["Mcp-Method"] = method
            if named is not None and isinstance(name := filled.get(named), str):
                usual["Mcp-Name"] = encode_value(name)
        elif meta is not None:
            filled["_meta"] = dict(meta)
        message: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": next(self._ids) if request_id is None else request_id,
            "method": method,
        }
        if filled or params is not None:
            message["params"] = filled
        changes = headers if _exact(headers) else {**usual, **dict(headers or {})}
        async with await self._start("POST", encode(message), changes) as exchange:
            yield MessageStream(exchange, self._timeout)

    @asynccontextmanager
    async def listen(
        self,
        *,
        tools_changed: bool = False,
        prompts_changed: bool = False,
        resources_changed: bool = False,
        resource_uris: Sequence[str] = (),
        request_id: int | str | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> AsyncIterator[ListenStream]:
        """
        Open a subscription and wait for its acknowledgement. Leaving is a client that disconnects::

            async with client.listen(tools_changed=True) as stream:
                await app.notify.tools_changed()
                notice = await stream.next()
                assert notice["method"] == "notifications/tools/list_changed"

        Args:
            tools_changed: ask for changes of the list of tools.
            prompts_changed: ask for changes of the list of prompts.
            resources_changed: ask for changes of the list of resources.
            resource_uris: ask for changes of these resources.
            request_id: a number of its own by default.
            headers: as for :meth:`request`.

        Raises:
            AssertionError: the server refused, or its first message is no acknowledgement. The text shows the answer.
        """
        flags = {
            "toolsListChanged": tools_changed,
            "promptsListChanged": prompts_changed,
            "resourcesListChanged": resources_changed,
        }
        wanted: dict[str, Any] = {name: True for name, flag in flags.items() if flag}
        if resource_uris:
            wanted["resourceSubscriptions"] = list(resource_uris)
        number = next(self._ids) if request_id is None else request_id
        async with self.stream(
            "subscriptions/listen", {"notifications": wanted}, headers=headers, request_id=number, era="modern"
        ) as stream:
            first: dict[str, Any] = await anext(stream, {})
            if first.get("method") != "notifications/subscriptions/acknowledged":
                body = (await stream.answer()).body.decode("utf-8", "replace")
                raise AssertionError(f"the subscription was not acknowledged, got HTTP {stream.status}: {body}")
            yield ListenStream(stream, number, first)

    # -- details -----------------------------------------------------------------------------------------------

    def _is_modern(self, era: Era | None) -> bool:
        return is_modern_date(self._revision) if era is None else era == "modern"

    def _version(self, era: Era | None) -> str:
        if era is None or (era == "modern") == is_modern_date(self._revision):
            return self._revision
        return MODERN[0] if era == "modern" else LATEST_LEGACY

    def _envelope(self, capabilities: Mapping[str, Any] | None) -> dict[str, Any]:
        envelope: dict[str, Any] = {
            PROTOCOL_VERSION: self._version("modern"),
            CLIENT_CAPABILITIES: dict(self._capabilities if capabilities is None else capabilities),
        }
        if self._client_info is not None:
            envelope[CLIENT_INFO] = dict(self._client_info)
        return envelope


def _exact(headers: HeaderChanges | None) -> bool:
    return headers is not None and not isinstance(headers, Mapping)


def _header_text(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return encode_value(value) if isinstance(value, str) else str(value)
