"""HTTP requests to an application in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp

from twolane.bridge import Exchange, RawHeaders, start
from twolane.testing.answers import Answer
from twolane.testing.lifespan import lifespan
from twolane.testing.streams import MessageStream

__all__ = ["HeaderChanges", "HttpTestClient"]

#: Headers of a request: a mapping is laid over the usual ones, where None takes one out; a sequence of pairs is sent
#: exactly as it is, doubles and odd spellings included, and nothing else.
HeaderChanges = Mapping[str, str | None] | Sequence[tuple[str, str]]


#: The state of each application whose lifespan is running, by its identity.
_live: dict[int, dict[str, Any]] = {}


class HttpTestClient:
    """Sends whole HTTP requests, well-formed or not. :class:`McpTestClient` documents the arguments."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        path: str,
        headers: Mapping[str, str | None] | None,
        base_url: str,
        server: tuple[str, int],
        client: tuple[str, int],
        scope: Mapping[str, Any] | None,
        timeout: float,
        run_lifespan: bool,
    ) -> None:
        self._app = app
        self._path = path
        self._headers = dict(headers or {})
        self._url = urlsplit(base_url)
        self._server = server
        self._client = client
        self._scope = dict(scope or {})
        self._timeout = timeout
        self._run_lifespan = run_lifespan
        self._state: dict[str, Any] | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        if self._run_lifespan:
            key = id(self._app)
            # An application has one lifespan at a time: a client that is entered within another's shares it.
            if key not in _live:
                _live[key] = await self._stack.enter_async_context(lifespan(self._app, self._timeout))
                self._stack.callback(_live.pop, key)
            self._state = _live[key]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def post(self, body: bytes, headers: HeaderChanges | None = None) -> Answer:
        """
        Post *body* as it is, for what no client would send::

            answer = await client.post(b"{")
            assert (answer.status, answer.error["code"]) == (400, -32700)

        Args:
            body: the bytes.
            headers: over ``Content-Type: application/json`` and an ``Accept`` for both kinds of answers. No ``Mcp-*``
                header is added.
        """
        return await self.send("POST", body, headers)

    async def send(
        self, verb: str, body: bytes = b"", headers: HeaderChanges | None = None, *, path: str | None = None
    ) -> Answer:
        """Send any HTTP request, for example a preflight: ``client.send("OPTIONS", headers={"Origin": ...})``."""
        async with await self._start(verb, body, headers, path) as exchange:
            return await MessageStream(exchange, self._timeout).answer()

    async def _start(self, verb: str, body: bytes, headers: HeaderChanges | None, path: str | None = None) -> Exchange:
        target, _, query = (self._path if path is None else path).partition("?")
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": verb,
            "scheme": self._url.scheme,
            "path": unquote(target),
            "raw_path": target.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": self._raw_headers(verb, body, headers),
            "client": self._client,
            "server": self._server,
            **self._scope,
        }
        if self._state is not None:
            scope["state"] = self._state.copy()
        try:
            async with asyncio.timeout(self._timeout):
                return await start(self._app, scope, body, patience=self._timeout)
        except TimeoutError:
            raise TimeoutError(f"no response within {self._timeout:g} s") from None

    def _raw_headers(self, verb: str, body: bytes, headers: HeaderChanges | None) -> RawHeaders:
        if headers is not None and not isinstance(headers, Mapping):
            return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        usual: dict[str, str | None] = {
            "Host": self._url.netloc,
            "Accept": "application/json, text/event-stream",
        }
        if verb == "POST":
            usual |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        merged: dict[str, str | None] = {}
        for layer in (usual, self._headers, headers or {}):
            merged |= {name.lower(): value for name, value in layer.items()}
        return [(name.encode("latin-1"), text.encode("latin-1")) for name, text in merged.items() if text is not None]
