#!/usr/bin/env bash
# Installs the parts of the operating system that tests need, where this machine lets us: Debian or a relative, as root.
# Elsewhere it says what is missing; tests that need it skip with that reason, and fail where CI=true.
set -euo pipefail

# One line a part: the program that tests start, and the package that brings it.
parts="chromium:chromium"

missing=""
for part in $parts; do
  command -v "${part%%:*}" >/dev/null 2>&1 || missing="$missing ${part##*:}"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
  echo "Not installed, so the tests that need it skip:$missing (as root on Debian, make test installs it)." >&2
  exit 0
fi
echo "Installing$missing ..."
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { timeout 300 apt-get update -q && timeout 900 apt-get install -q -y --no-install-recommends $missing; } \
  </dev/null >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "Could not install:$missing" >&2
fi
