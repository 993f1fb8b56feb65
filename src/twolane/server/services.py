"""What a lane lends to the requests it serves: the way out, change notices, and the handler's services."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from twolane.protocol.inputs import InputRequest
    from twolane.server.context import Call

__all__ = ["Notify", "Outlet", "Services"]


class Notify(Protocol):
    """Publishes change notices to every open stream that asked for them, whichever worker holds it."""

    async def tools_changed(self) -> None:
        """Say that the list of tools changed."""

    async def prompts_changed(self) -> None:
        """Say that the list of prompts changed."""

    async def resources_changed(self) -> None:
        """Say that the list of resources changed."""

    async def resource_updated(self, uri: str) -> None:
        """Say that the resource *uri* changed."""

    def tools_changed_soon(self) -> None:
        """As :meth:`tools_changed`, from any thread and without waiting."""

    def prompts_changed_soon(self) -> None:
        """As :meth:`prompts_changed`, from any thread and without waiting."""

    def resources_changed_soon(self) -> None:
        """As :meth:`resources_changed`, from any thread and without waiting."""

    def resource_updated_soon(self, uri: str) -> None:
        """As :meth:`resource_updated`, from any thread and without waiting."""


class Outlet(Protocol):
    """Where the messages of one request go while it runs."""

    @property
    def cancelled(self) -> bool:
        """True once the client has gone or the request was given up."""

    async def send_notification(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification on the request's own stream; dropped where the response is plain JSON."""

    async def push(self, request: InputRequest) -> dict[str, Any]:
        """Send a request to the client and wait for its answer."""

    async def close_stream(self, retry: float | None) -> None:
        """End the current connection of the stream, so that the client comes back for the rest."""


class Services(Protocol):
    """What a handler of MCP requests lends to each call."""

    @property
    def notify(self) -> Notify:
        """The handler's change notices."""

    async def issue_handle(self, payload: Any, ttl: float | None, call: Call) -> str:
        """Seal *payload* for the principal of *call*."""

    async def open_handle(self, text: str, call: Call) -> Any:
        """Open what :meth:`issue_handle` sealed."""

    async def run_sync(self, function: Callable[[], Any]) -> Any:
        """Run *function* in a worker thread, within ``max_worker_threads``."""

    def report(self, exc: BaseException, call: Call) -> None:
        """Hand a failure to ``on_error``. Never raises."""
