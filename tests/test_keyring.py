"""Configured keys, and the record of what was spent."""

from __future__ import annotations

import base64
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twolane.keyring import KEYS_VARIABLE, SpentSet, StaticRing, configured_ring, parse_keys
from twolane.ports import Key

SECRET = bytes(range(200, 240))


@given(secret=st.binary(min_size=32, max_size=80))
def test_spellings_of_one_secret(secret: bytes) -> None:
    """Bytes, hex, base64 and base64url, padded or not, name the same key, so workers may spell it differently."""
    texts = [secret.hex(), secret.hex().upper(), f"  {secret.hex()}\n"]
    for encoded in (base64.b64encode(secret).decode(), base64.urlsafe_b64encode(secret).decode()):
        if not all(character in "0123456789abcdefABCDEF" for character in encoded.rstrip("=")):
            texts += [encoded, encoded.rstrip("=")]
    expected = Key.of(secret)
    assert parse_keys([secret], "keys") == (expected,)
    assert all(parse_keys([text], "keys") == (expected,) for text in texts)


def test_plain_text() -> None:
    """A text that is neither hex nor base64 is taken as it is."""
    text = "correct horse battery staple, and then some"
    assert parse_keys([text], "keys") == (Key.of(text.encode()),)


@pytest.mark.parametrize("short", ["", "short", "a" * 31, "ab" * 16, "f" * 63, b"x" * 31, "é" * 15])
def test_short_keys(short: str | bytes) -> None:
    """A secret below 32 bytes is refused by source and place, and the text never shows it."""
    with pytest.raises(ValueError, match=r"TWOLANE_STATE_KEYS, key 2 has \d+ bytes") as caught:
        parse_keys([SECRET, short], KEYS_VARIABLE)
    shown = str(caught.value).replace("secrets.token_hex", "")
    assert len(short) < 5 or str(short) not in shown


@pytest.mark.parametrize("wrong", [[None], [7], [["x" * 40]], "x" * 40, b"x" * 40])
def test_wrong_types(wrong: Any) -> None:
    """A secret that is no str or bytes, and a single one outside a list, is a TypeError that names the option."""
    with pytest.raises(TypeError, match="state_keys"):
        configured_ring(wrong, environ={})


def test_no_keys_and_doubled_keys() -> None:
    """An empty list is refused, and so is one key in two spellings."""
    with pytest.raises(ValueError, match="no key"):
        parse_keys([], "state_keys")
    with pytest.raises(ValueError, match="key 2 is the same as key 1"):
        parse_keys([SECRET, SECRET.hex()], "state_keys")


def test_secrets_stay_out_of_repr() -> None:
    """The repr of a key names its id only."""
    assert "secret" not in repr(Key.of(SECRET))
    assert repr(SECRET) not in repr(Key.of(SECRET))
    with pytest.raises(ValueError, match="secret"):
        Key(b"12345678", b"short")
    with pytest.raises(ValueError, match="id"):
        Key(b"1", SECRET)


async def test_option_beats_environment() -> None:
    """The option wins over the environment, which wins over nothing; an empty variable is no variable."""
    environ = {KEYS_VARIABLE: f"{SECRET.hex()}, {'plain text ' * 4}"}
    ring = configured_ring(None, environ=environ)
    assert ring is not None
    assert [len(key.secret) for key in await ring.keys()] == [40, 43]
    assert (await ring.keys())[0].secret == SECRET
    chosen = configured_ring([b"z" * 32], environ=environ)
    assert chosen is not None
    assert [key.secret for key in await chosen.keys()] == [b"z" * 32]
    assert configured_ring(None, environ={}) is None
    assert configured_ring(None, environ={KEYS_VARIABLE: "  "}) is None
    with pytest.raises(ValueError, match=f"{KEYS_VARIABLE}, key 2"):
        configured_ring(None, environ={KEYS_VARIABLE: SECRET.hex() + ","})


async def test_static_ring_spends_where_it_is_told() -> None:
    """Configured keys leave the record of spent tokens to the backend, and keep one of their own without it."""
    backend = StaticRing([Key.of(SECRET)])
    first, second = (StaticRing([Key.of(b"y" * 32)], backend) for _ in range(2))
    assert await first.spend(b"token", 2e9)
    assert not await second.spend(b"token", 2e9)
    assert not await backend.spend(b"token", 2e9)


@pytest.mark.obligation("S-117")
@given(tokens=st.lists(st.binary(max_size=2), max_size=60))
def test_spent_exactly_once(tokens: list[bytes]) -> None:
    """Each token is new the first time it is given and never again."""
    spent = SpentSet()
    seen: set[bytes] = set()
    for token in tokens:
        assert spent.spend(token, 10.0, 5.0) is (token not in seen)
        seen.add(token)


def test_spent_tokens_are_forgotten_after_expiry() -> None:
    """The record does not grow over time: expired tokens make room, living ones stay."""
    spent = SpentSet(limit=100)
    assert spent.spend(b"living", 1e9, 0.0)
    for number in range(50_000):
        assert spent.spend(str(number).encode(), number + 10.0, float(number))
    assert len(spent) <= 100
    assert not spent.spend(b"living", 1e9, 50_000.0)


def test_a_full_record_refuses() -> None:
    """When all that is remembered is alive, a new token is refused rather than an old one forgotten."""
    spent = SpentSet(limit=3)
    assert all(spent.spend(token, 100.0, 0.0) for token in (b"a", b"b", b"c"))
    assert not spent.spend(b"d", 100.0, 0.0)
    assert not spent.spend(b"a", 100.0, 0.0)
    assert spent.spend(b"d", 300.0, 200.0)


def test_spent_once_among_threads() -> None:
    """Of many threads that spend the same tokens, each token is new for one of them only."""
    spent = SpentSet()
    wins: list[bytes] = []
    tokens = [str(number).encode() for number in range(500)]
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        wins.extend(token for token in tokens if spent.spend(token, 10.0, 0.0))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wins) == sorted(tokens)
