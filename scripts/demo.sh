#!/usr/bin/env bash
# Prints a call that can be pasted into a second terminal, then serves the hello example in the foreground.
set -euo pipefail
cd "$(dirname "$0")/.."
host=$1
port=$2

cat <<TEXT
Serving examples/hello.py at http://$host:$port/mcp (stop with Ctrl-C).
In a second terminal:

curl -sS http://$host:$port/mcp \\
  -H 'Content-Type: application/json' \\
  -H 'Accept: application/json, text/event-stream' \\
  -H 'MCP-Protocol-Version: 2026-07-28' \\
  -H 'Mcp-Method: tools/call' \\
  -H 'Mcp-Name: hello' \\
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":{"name":"World"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'

TEXT
exec .venv/bin/twolane serve examples/hello.py:create_server --host "$host" --port "$port"
