"""
A real browser on another origin.

The page lives at ``app.test``, which the browser is told to find on loopback. It calls a tool with ``fetch``, which
takes a preflight, then posts a plain text, which takes none, and writes what came of both into the document.
"""

from __future__ import annotations

import html
import http.server
import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import parts

pytestmark = [pytest.mark.browser]

TARGET = "examples/everything.py:create_server"
PAGE = """<!doctype html><meta charset="utf-8"><title>page</title><pre id="outcome">nothing happened</pre><script>
const write = (outcome) => { document.getElementById("outcome").textContent = JSON.stringify(outcome); };
const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
};
const attempt = async (options) => {
    try {
        const response = await fetch(URL_OF_THE_SERVER, { method: "POST", ...options });
        return { status: response.status, body: await response.json() };
    } catch (error) {
        return { error: error.name };
    }
};
const call = {
    headers: {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "test_x_mcp_header",
        "Mcp-Param-Region": REGION_HEADER,
    },
    body: JSON.stringify({
        jsonrpc: "2.0", id: 1, method: "tools/call",
        params: { name: "test_x_mcp_header", arguments: { region: "eu-west" }, _meta: meta },
    }),
};
attempt(call).then(async (called) => write({ called, plain: await attempt({ body: "plain" }) }));
</script>"""
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--virtual-time-budget=20000",
    "--timeout=20000",
    "--dump-dom",
)

Visit = Callable[..., dict[str, Any]]


@pytest.fixture
def visit(tmp_path: Path) -> Iterator[Visit]:
    """Opens the page in the browser and gives what it wrote into its document."""
    chromium = parts.require_apt("chromium", "chromium")
    page = {"html": ""}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page["html"].encode() if self.path == "/" else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=site.serve_forever, daemon=True)
    thread.start()

    def open_page(url: str, region: str = "eu-west") -> dict[str, Any]:
        page["html"] = PAGE.replace("URL_OF_THE_SERVER", json.dumps(url)).replace("REGION_HEADER", json.dumps(region))
        address = f"http://app.test:{site.server_address[1]}/"
        done = subprocess.run(
            [
                str(chromium),
                *QUIET,
                f"--user-data-dir={tmp_path / 'profile'}",
                "--host-resolver-rules=MAP app.test 127.0.0.1",
                address,
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        found = re.search(r'<pre id="outcome">(.*?)</pre>', done.stdout, re.DOTALL)
        assert found is not None, f"the browser ended with {done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
        outcome: dict[str, Any] = json.loads(html.unescape(found[1]))
        return outcome

    try:
        yield open_page
    finally:
        site.shutdown()
        site.server_close()
        thread.join(5)


def test_an_allowed_origin_completes_a_call(visit: Visit) -> None:
    """A page whose host is allowed passes the preflight with an Mcp-Param-* header and reads the tool's answer."""
    with parts.serve(TARGET, "--allow-origin", "app.test") as served:
        outcome = visit(served.url)
    called = outcome["called"]
    assert called["status"] == 200, outcome
    assert called["body"]["id"] == 1
    assert called["body"]["result"]["content"] == [{"type": "text", "text": "region=eu-west"}]
    assert outcome["plain"]["status"] == 415


def test_the_header_a_browser_sends_is_checked(visit: Visit) -> None:
    """A page that says one region in the header and another in the body reads that the two disagree."""
    with parts.serve(TARGET, "--allow-origin", "app.test") as served:
        outcome = visit(served.url, region="us-east")
    assert outcome["called"]["status"] == 400, outcome
    assert outcome["called"]["body"]["error"]["code"] == -32020


@pytest.mark.parametrize("options", [("--allow-origin", "other.test"), ()], ids=["another allowed", "by default"])
def test_another_origin_is_refused(options: tuple[str, ...], visit: Visit) -> None:
    """A page whose host is not allowed fails its preflight, and can read why from an answer that needs none."""
    with parts.serve(TARGET, *options) as served:
        outcome = visit(served.url)
    assert outcome["called"] == {"error": "TypeError"}
    assert_refused(outcome["plain"], "origin_not_allowed", "allowed_origin_hostnames")


def test_a_rebound_name_is_refused(visit: Visit) -> None:
    """A name that resolves to loopback but is not localhost does not reach the server, even from an allowed page."""
    with parts.serve(TARGET, "--allow-origin", "app.test") as served:
        outcome = visit(f"http://app.test:{served.port}/mcp")
    assert outcome["called"] == {"error": "TypeError"}
    assert_refused(outcome["plain"], "host_not_allowed", "allowed_hostnames")


def assert_refused(answer: dict[str, Any], reason: str, option: str) -> None:
    """The page read a JSON-RPC error that names the option to set."""
    assert answer["status"] == 403, answer
    error = answer["body"]["error"]
    assert (error["code"], error["data"]["reason"]) == (-32600, reason)
    assert option in error["message"]
