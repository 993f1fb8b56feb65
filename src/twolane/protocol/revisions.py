"""
Revisions of the protocol and the two eras they belong to (basic/versioning).

*Modern* is 2026-07-28 and later: every request carries its own metadata. *Legacy* is 2025-11-25 and earlier:
a connection starts with ``initialize``.
"""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["DEFAULT_LEGACY", "LATEST_LEGACY", "LEGACY", "MODERN", "Era", "is_modern_date"]

Era = Literal["modern", "legacy"]

#: Modern revisions served, newest first.
MODERN: tuple[str, ...] = ("2026-07-28",)
#: Legacy revisions served, newest first.
LEGACY: tuple[str, ...] = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
LATEST_LEGACY = LEGACY[0]
#: What a legacy request without a version header is taken for (2025-11-25 basic/transports).
DEFAULT_LEGACY = "2025-03-26"

_ISO_DATE = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")


def is_modern_date(version: str) -> bool:
    """
    Tell whether *version* is a date of the modern era, served or not.

    Only ISO dates count: by plain string order "banana" would be newer than every revision.
    """
    return _ISO_DATE.fullmatch(version) is not None and version >= MODERN[-1]
