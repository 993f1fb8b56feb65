"""Who calls: auth info from middleware or handed over, and the ambient auth context."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.authentication import AuthCredentials, SimpleUser
from starlette.requests import Request

from tests.faces.server import Seen, make_factory
from tests.faces.serving import Client, fetch_face, running
from twolane import AuthInfo, Context, McpAuthContext, McpServer, create_mcp_handler, get_mcp_auth_context


def authenticated(app: Any, user: Any) -> Any:
    """Authentication middleware in its simplest form."""

    async def middleware(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "user": user, "auth": AuthCredentials(["tools"])}
        await app(scope, receive, send)

    return middleware


def who(app: Any) -> dict[str, Any]:
    with running(app) as port:
        result: dict[str, Any] = Client(port).call("whoami").result["structuredContent"]
        return result


SDK_USER = AuthenticatedUser(AccessToken(token="t", client_id="client-1", scopes=[], subject="user-1"))


@pytest.mark.obligation("S-049")
@pytest.mark.parametrize("face", ["asgi", "fetch"])
def test_middleware_is_heard(face: str) -> None:
    """The user that middleware authenticated reaches factory and handler, through both faces."""
    handler = create_mcp_handler(make_factory(Seen()))
    app: Any = handler if face == "asgi" else fetch_face(handler)
    assert who(authenticated(app, SDK_USER)) == {
        "client": "client-1", "subject": "user-1", "props": None, "factory": "user-1"
    }  # fmt: skip
    assert who(authenticated(app, SimpleUser("ada")))["subject"] == "ada"
    assert who(app)["subject"] is None


def test_an_authorization_header_alone_is_nobody() -> None:
    """Nothing is derived from a token that nobody verified."""
    with running(create_mcp_handler(make_factory(Seen()))) as port:
        answer = Client(port).call("whoami", headers={"authorization": "Bearer secret"})
        assert answer.result["structuredContent"]["subject"] is None
        assert b"secret" not in answer.content


def test_the_explicit_caller_and_its_props() -> None:
    """Auth info handed to fetch wins over middleware, and its extra props become the ambient auth context."""
    handler = create_mcp_handler(make_factory(Seen()))
    info = AuthInfo(client_id="client-1", subject="explicit", extra={"props": {"plan": "pro"}})

    async def app(scope: Any, receive: Any, send: Any) -> None:
        response = await handler.fetch(Request(scope, receive), auth_info=info)
        await response(scope, receive, send)

    assert who(authenticated(app, SDK_USER)) == {
        "client": "client-1", "subject": "explicit", "props": {"plan": "pro"}, "factory": "explicit"
    }  # fmt: skip


def test_two_clients_for_one_request() -> None:
    """Middleware and fetch that name different clients are a 500 and an on_error report, and nothing runs."""
    seen = Seen()
    handler = create_mcp_handler(make_factory(seen), on_error=seen.on_error)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        response = await handler.fetch(Request(scope, receive), auth_info=AuthInfo(client_id="client-2"))
        await response(scope, receive, send)

    with running(authenticated(app, SDK_USER)) as port:
        answer = Client(port).call("whoami", request_id=4)
        assert (answer.status, answer.error["code"], answer.last["id"]) == (500, -32603, 4)
    assert len(seen.errors) == 1
    assert seen.factories == 0


@pytest.mark.parametrize("kind", ["value", "function", "async"])
def test_the_auth_context_option(kind: str) -> None:
    """auth_context is a value or a function of the request, plain or async; it wins over props of the auth info."""

    def plain(request: Request) -> McpAuthContext:
        return McpAuthContext({"from": request.headers["mcp-method"]})

    async def later(request: Request) -> McpAuthContext:
        return plain(request)

    option: Any = {"value": McpAuthContext({"from": "tools/call"}), "function": plain, "async": later}[kind]
    assert who(create_mcp_handler(make_factory(Seen()), auth_context=option))["props"] == {"from": "tools/call"}


def test_a_broken_auth_context() -> None:
    """An auth_context function that raises, or returns junk, fails closed: 500, reported, nothing runs."""

    def raising(request: Request) -> McpAuthContext:
        raise RuntimeError("secret-detail")

    def junk(request: Request) -> Any:
        return {"props": {}}

    for option in (raising, junk):
        seen = Seen()
        with running(create_mcp_handler(make_factory(seen), auth_context=option, on_error=seen.on_error)) as port:
            answer = Client(port).call("whoami")
            assert answer.status == 500
            assert b"secret-detail" not in answer.content
        assert len(seen.errors) == 1
        assert seen.factories == 0


@pytest.mark.parametrize("face", ["asgi", "fetch"])
def test_the_ambient_context_lasts(face: str) -> None:
    """The auth context holds in the factory, in the handler, and in every message of a streamed body."""
    found: list[Any] = []

    def create_server() -> McpServer:
        found.append(get_mcp_auth_context())
        server = McpServer("ambient", version="1")

        @server.tool
        async def stream(ctx: Context) -> str:
            """Stream."""
            for number in range(3):
                await ctx.progress(number + 1)
                found.append(get_mcp_auth_context())
            return "done"

        @server.tool
        def thread() -> str:
            """Look from a worker thread."""
            found.append(get_mcp_auth_context())
            return "done"

        return server

    context = McpAuthContext({"user": 1})
    handler = create_mcp_handler(create_server, auth_context=context)
    with running(handler if face == "asgi" else fetch_face(handler)) as port:
        client = Client(port)
        assert client.call("stream", meta={"progressToken": 1}).streamed
        client.call("thread")
    assert found == [context] * 6
    assert get_mcp_auth_context() is None


@pytest.mark.obligation("X-04")
def test_handles_belong_to_their_principal() -> None:
    """A handle opens for the principal it was issued to and for no other."""

    def create_server() -> McpServer:
        server = McpServer("handles", version="1")

        @server.tool
        async def issue(ctx: Context) -> str:
            """Issue."""
            return await ctx.issue_handle({"cart": 7})

        @server.tool
        async def use(handle: str, ctx: Context) -> Any:
            """Open."""
            return await ctx.open_handle(handle)

        return server

    handler = create_mcp_handler(create_server)
    with (
        running(authenticated(handler, SimpleUser("ada"))) as ada,
        running(authenticated(handler, SimpleUser("eve"))) as eve,
    ):
        handle = Client(ada).call("issue").result["structuredContent"]["result"]
        assert Client(ada).call("use", {"handle": handle}).result["structuredContent"] == {"cart": 7}
        refused = Client(eve).call("use", {"handle": handle})
        assert (refused.error["code"], refused.reason) == (-32602, "invalid_handle")
        assert Client(ada).call("use", {"handle": handle[:-2] + "zz"}).reason == "invalid_handle"
