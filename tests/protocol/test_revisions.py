"""Revisions and eras."""

from __future__ import annotations

import pytest

from twolane.protocol.revisions import DEFAULT_LEGACY, LATEST_LEGACY, LEGACY, MODERN, is_modern_date


def test_the_revisions_served() -> None:
    """One modern revision and four legacy ones are served, newest first; a silent legacy client is 2025-03-26."""
    assert MODERN == ("2026-07-28",)
    assert LEGACY == ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
    assert LATEST_LEGACY == "2025-11-25"
    assert DEFAULT_LEGACY == "2025-03-26"
    assert list(LEGACY) == sorted(LEGACY, reverse=True)


@pytest.mark.obligation("S-140")
@pytest.mark.parametrize(
    "version", ["2026-07-28", "2026-07-29", "2026-08-01", "2027-01-01", "2030-12-31", "9999-12-31"]
)
def test_modern_dates(version: str) -> None:
    """The first modern revision and every later date are of the modern era, served or not."""
    assert is_modern_date(version)


@pytest.mark.obligation("S-140")
@pytest.mark.parametrize(
    "version",
    [
        *LEGACY,
        "2024-10-07",
        "2026-07-27",
        "0000-01-01",
        "banana",
        "zzzz-zz-zz",
        "",
        "draft",
        "3000",
        "2026-7-28",
        "2026-07-28 ",
        " 2026-07-28",
        "2026-07-28\n",
        "2026-07-28, 2026-07-28",
        "2026-07-28-rc1",
        "2026/07/28",
        "20260728",
        "2026-13-01",
        "2026-00-01",
        "2026-08-00",
        "2026-08-32",
        "12026-07-28",
        "\uff12\uff10\uff12\uff16-07-28",
        "2026-07-2\u0668",
        "DRAFT-2026-v1",
    ],
)
def test_everything_else_is_not_modern(version: str) -> None:
    """Only ISO dates count: what merely sorts after the first modern revision is of no era."""
    assert not is_modern_date(version)
