"""State carried by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sealing import JSON, NAMES, reason, sealer
from twolane.errors import SealError
from twolane.seal import Binding, RequestStateCodec, state_binding


class TestCodec:
    """State carried by hand."""

    @given(payload=JSON, principal=NAMES, arguments=st.none() | st.dictionaries(NAMES, JSON, max_size=3))
    def test_round_trip(self, payload: Any, principal: str, arguments: Any) -> None:
        """What is minted verifies under the same terms and comes back equal."""
        codec = RequestStateCodec(["k" * 32])
        terms: dict[str, Any] = {"principal": principal, "method": "m", "name": "n", "arguments": arguments}
        assert codec.verify(codec.mint(payload, **terms), **terms) == payload

    @pytest.mark.parametrize(
        "change", [{"principal": "eve"}, {"method": "x"}, {"name": "x"}, {"arguments": {"a": 2}}, {"principal": ()}]
    )
    def test_foreign_terms_fail(self, change: dict[str, Any]) -> None:
        """Any other principal, method, name or arguments is refused, and so is leaving the term out."""
        codec = RequestStateCodec(["k" * 32])
        terms: dict[str, Any] = {"principal": "ann", "method": "m", "name": "n", "arguments": {"a": 1}}
        text = codec.mint(1, **terms)
        with pytest.raises(SealError, match="altered"):
            codec.verify(text, **{**terms, **change})

    def test_arguments_compare_as_json(self) -> None:
        """Arguments that are equal as JSON are equal here: 1.0 and 1, in any order of keys."""
        codec = RequestStateCodec([b"k" * 32])
        assert codec.verify(codec.mint(1, arguments={"a": 1.0, "b": 2}), arguments={"b": 2, "a": 1}) == 1

    def test_rotation_audience_and_expiry(self) -> None:
        """Old keys still verify, another audience and an unknown key do not, and neither does an expired text."""
        old, new = RequestStateCodec(["p" * 32]), RequestStateCodec(["q" * 32, "p" * 32])
        text = old.mint("x", now=1000.0)
        assert new.verify(text, now=1600.0) == "x"
        with pytest.raises(SealError, match="expired"):
            new.verify(text, now=1600.001)
        with pytest.raises(SealError, match="unknown_key"):
            old.verify(new.mint("x"))
        with pytest.raises(SealError, match="altered"):
            RequestStateCodec(["p" * 32], audience="b").verify(old.mint("x"))

    async def test_never_taken_for_request_state(self) -> None:
        """With the same key, a text of a codec does not open as sealed request state, nor the reverse."""
        codec, seals = RequestStateCodec([b"k" * 32]), sealer()
        bare = Binding("state", arguments=state_binding((), "", {}).arguments)
        assert await reason(seals.open(codec.mint(1), bare)) == "altered"
        with pytest.raises(SealError, match="altered"):
            codec.verify(await seals.seal(1, bare))
