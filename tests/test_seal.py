"""Sealed text: what opens, what does not, and how keys are read."""

from __future__ import annotations

import base64
import os
import string
import subprocess
import sys
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sealing import BINDING, JSON, KEY, NAMES, OTHER, reason, sealer
from twolane.ports import Key
from twolane.seal import MAX_SEALED, Binding, RequestStateCodec, handle_binding, state_binding

BINDINGS = st.builds(
    Binding,
    purpose=st.sampled_from(("state", "handle", "codec")),
    principal=st.lists(NAMES, max_size=3).map(tuple),
    method=NAMES,
    name=NAMES,
    arguments=st.binary(max_size=4),
    server=NAMES,
)


@pytest.mark.obligation("S-115")
@given(payload=JSON, binding=BINDINGS)
async def test_round_trip(payload: Any, binding: Binding) -> None:
    """Whatever JSON value is sealed comes back equal under the same binding."""
    seals = sealer()
    assert await seals.open(await seals.seal(payload, binding), binding) == payload


@pytest.mark.obligation("S-115", "X-05")
async def test_every_altered_character_fails() -> None:
    """No single changed, dropped or doubled character leaves a text that opens."""
    seals = sealer()
    text = await seals.seal({"step": 1}, BINDING)
    for position, character in enumerate(text):
        other = "A" if character != "A" else "B"
        for altered in (
            text[:position] + other + text[position + 1 :],
            text[:position] + text[position + 1 :],
            text[:position] + character + text[position:],
        ):
            if altered != text:
                assert await reason(seals.open(altered, BINDING)) in ("malformed", "altered", "unknown_key")


@pytest.mark.obligation("S-115", "X-05")
@given(position=st.integers(0, 400), character=st.sampled_from(string.printable + "é=\x00"))
async def test_any_replacement_fails(position: int, character: str) -> None:
    """Replacing a character by any other, of the alphabet or not, leaves a text that does not open."""
    seals = sealer()
    text = await seals.seal(["some", "state"], BINDING)
    position %= len(text)
    altered = text[:position] + character + text[position + 1 :]
    if altered != text:
        await reason(seals.open(altered, BINDING))


@pytest.mark.obligation("S-115")
@given(text=st.text() | st.binary() | st.integers() | st.none() | st.lists(st.text()))
async def test_junk_is_malformed(text: Any) -> None:
    """What is no sealed text, of whatever type, is refused and raises nothing else."""
    assert await reason(sealer().open(text, BINDING)) == "malformed"
    if isinstance(text, str):
        assert await reason(sealer().open("tl1." + text, BINDING)) in ("malformed", "unknown_key")


@pytest.mark.obligation("S-115")
async def test_only_the_canonical_encoding_opens() -> None:
    """A text that decodes to the same bytes in another spelling is malformed: padding, blanks, stray bits, +/."""
    seals = sealer()
    text = await seals.seal("x" * 30, BINDING)
    spellings = [text + "=", text + "==", text + "\n", " " + text, text.replace("tl1.", "TL1.")]
    body = text.removeprefix("tl1.")
    raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    standard = "tl1." + base64.b64encode(raw).decode().rstrip("=")
    if standard != text:
        spellings.append(standard)
    if len(body) % 4:
        alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
        spellings.append(text[:-1] + alphabet[alphabet.index(text[-1]) ^ 1])
    for spelling in spellings:
        assert await reason(seals.open(spelling, BINDING)) == "malformed"


@pytest.mark.obligation("S-116", "S-123", "X-05")
@pytest.mark.parametrize(
    "change",
    [
        {"principal": ("anonymous",)},
        {"principal": ("auth", "iss", "other", "client")},
        {"principal": ("auth", "isss", "ub", "client")},
        {"principal": ("auth", "iss", "sub", "client", "")},
        {"method": "prompts/get"},
        {"name": "refund"},
        {"arguments": b"e" * 32},
        {"server": "bank"},
        {"purpose": "handle"},
    ],
)
async def test_foreign_binding_fails(change: dict[str, Any]) -> None:
    """State does not open for another principal, method, name, arguments, server or purpose."""
    seals = sealer()
    text = await seals.seal({"paid": True}, BINDING)
    assert await reason(seals.open(text, replace(BINDING, **change))) == "altered"


@pytest.mark.obligation("S-116")
@given(first=BINDINGS, second=BINDINGS)
async def test_bindings_never_look_alike(first: Binding, second: Binding) -> None:
    """Two bindings open each other's texts only if they are equal, however their parts run together."""
    seals = sealer()
    text = await seals.seal(1, first)
    if first == second:
        assert await seals.open(text, second) == 1
    else:
        assert await reason(seals.open(text, second)) == "altered"


@pytest.mark.obligation("X-05")
async def test_scopes_are_kept_apart() -> None:
    """Sealers of another namespace or audience, and of shifted ones, do not open each other's texts."""
    text = await sealer(namespace="ab", audience="c").seal(1, BINDING)
    assert await sealer(namespace="ab", audience="c").open(text, BINDING) == 1
    for namespace, audience in (("a", "bc"), ("abc", ""), ("ab", ""), ("c", "ab")):
        assert await reason(sealer(namespace=namespace, audience=audience).open(text, BINDING)) == "altered"


@pytest.mark.obligation("S-116")
def test_state_is_bound_to_the_request() -> None:
    """The binding of a request compares arguments as JSON: 1.0 is 1, key order is nothing, absent is empty."""
    params = {"name": "pay", "arguments": {"b": 1, "a": [2.0, {"y": 1, "x": None}]}}
    same = {"name": "pay", "arguments": {"a": [2, {"x": None, "y": 1.0}], "b": 1}, "_meta": {"progressToken": 1}}
    principal = ("anonymous",)
    assert state_binding(principal, "tools/call", params) == state_binding(principal, "tools/call", same)
    bare = state_binding(principal, "tools/call", {"name": "pay"})
    assert bare == state_binding(principal, "tools/call", {"name": "pay", "arguments": {}})
    assert bare != state_binding(principal, "tools/call", params)
    reading = state_binding(principal, "resources/read", {"uri": "note://1", "name": "pay"})
    assert reading.name == "note://1"
    assert handle_binding(principal).method == ""


async def test_confidential_and_never_alike() -> None:
    """The payload cannot be read from the text, and sealing it twice gives two unrelated texts."""
    seals = sealer()
    texts = {await seals.seal("a secret payload", BINDING) for _ in range(50)}
    assert len(texts) == 50
    assert len({text[20:60] for text in texts}) == 50
    for text in texts:
        body = text.removeprefix("tl1.")
        assert b"secret" not in base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))


@pytest.mark.obligation("S-116", "X-05")
@given(ttl=st.integers(1, 10**6), now=st.integers(0, 2 * 10**12))
async def test_expiry_boundary(ttl: int, now: int) -> None:
    """A text opens up to and in the millisecond it expires in, and one millisecond later it does not."""
    seals = sealer()
    text = await seals.seal(1, BINDING, ttl / 1000, now=now / 1000)
    expires = now + ttl
    assert await seals.open(text, BINDING, now=expires / 1000) == 1
    assert await reason(seals.open(text, BINDING, now=(expires + 1) / 1000)) == "expired"


async def test_the_exact_millisecond() -> None:
    """At the very expiry a text opens; a millisecond after, it does not."""
    seals = sealer(ttl=600)
    text = await seals.seal(1, BINDING, now=1_000_000)
    assert await seals.open(text, BINDING, now=1_000_600) == 1
    assert await reason(seals.open(text, BINDING, now=1_000_600.001)) == "expired"


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e12, True, "600", None])
def test_senseless_ttl_is_refused(ttl: Any) -> None:
    """A ttl that is no positive, finite number of seconds fails at construction."""
    with pytest.raises(ValueError, match="ttl"):
        sealer(ttl=ttl)
    with pytest.raises(ValueError, match="ttl"):
        RequestStateCodec(["k" * 32], ttl=ttl)


@pytest.mark.parametrize(
    "payload",
    [
        float("nan"),
        [float("inf")],
        {1: "a"},
        {"when": date(2026, 1, 1)},
        {"set": {1}},
        b"bytes",
        2**70,
        "\ud800",
        object(),
    ],
)
async def test_foreign_payloads_are_refused(payload: Any) -> None:
    """What would not come back equal is a TypeError when it is sealed."""
    with pytest.raises(TypeError, match="JSON"):
        await sealer().seal(payload, BINDING)


async def test_endless_payloads_are_refused() -> None:
    """A payload that holds itself, or nests without end, is a TypeError."""
    loop: list[Any] = []
    loop.extend((loop, loop))
    with pytest.raises(TypeError, match="nested"):
        await sealer().seal(loop, BINDING)


async def test_size_is_bounded() -> None:
    """Too large a payload is refused when sealed, and too long a text is refused before it is even decoded."""
    seals = sealer()
    await seals.seal("x" * 49_000, BINDING)
    with pytest.raises(ValueError, match="the limit"):
        await seals.seal("x" * 50_000, BINDING)
    assert await reason(seals.open("tl1." + "A" * MAX_SEALED, BINDING)) == "malformed"


@pytest.mark.obligation("X-05")
async def test_rotation() -> None:
    """The first key seals, every key of the ring opens, and a key that left it opens nothing."""
    text = await sealer(KEY).seal(1, BINDING)
    assert await sealer(OTHER, KEY).open(text, BINDING) == 1
    assert await reason(sealer(OTHER).open(text, BINDING)) == "unknown_key"
    newer = await sealer(OTHER, KEY).seal(2, BINDING)
    assert await sealer(OTHER).open(newer, BINDING) == 2
    assert await reason(sealer(KEY).open(newer, BINDING)) == "unknown_key"


async def test_a_key_of_the_same_id_does_not_open() -> None:
    """Naming the right key is not enough: another secret under the same id fails as altered."""
    text = await sealer(KEY).seal(1, BINDING)
    assert await reason(sealer(Key(KEY.id, b"x" * 32)).open(text, BINDING)) == "altered"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork; several workers are served on POSIX only")
def test_forked_children_do_not_repeat_salts() -> None:
    """Two children of one process that had sealed before seal the same payload to different texts."""
    script = """
import asyncio, os, sys
from twolane.keyring import StaticRing
from twolane.ports import Key
from twolane.seal import Binding, Sealer
seals, binding = Sealer(StaticRing([Key.of(b"k" * 32)])), Binding("state")
asyncio.run(seals.seal(1, binding))
for _ in range(2):
    if os.fork() == 0:
        os.write(1, asyncio.run(seals.seal(1, binding)).encode() + b"\\n")
        os._exit(0)
    os.wait()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    texts = done.stdout.split()
    assert len(texts) == 2
    assert texts[0] != texts[1]


def test_no_cryptography_before_the_first_use() -> None:
    """Importing the module and making a sealer does not import the cryptography package."""
    script = """
import sys
from twolane.backends import open_backend
from twolane.seal import Sealer
Sealer(open_backend())
sys.exit("cryptography" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0
