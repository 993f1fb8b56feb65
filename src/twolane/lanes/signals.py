"""
Ending long streams when the process is told to stop.

Servers such as uvicorn wait for open connections before they tell the application that it is time to go, so a listen
stream would keep the process alive for as long as its client likes. While at least one stream is open, SIGTERM and
SIGINT therefore end the streams first and then reach whoever handled them before.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["SignalChain"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SignalChain:
    """
    Calls *on_signal* at SIGTERM and SIGINT, then the handler that was there before.

    Installed only in the main thread: elsewhere Python does not allow it, and :meth:`install` does nothing.
    """

    def __init__(self, on_signal: Callable[[], None]) -> None:
        self._on_signal = on_signal
        self._previous: dict[int, Any] = {}

    def install(self) -> None:
        """Put the chain in front of the present handlers. Repeated calls do nothing."""
        if self._previous or threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            previous = signal.getsignal(number)
            if previous is None:
                continue  # Set by C code, which could not be called from here.
            self._previous[number] = previous
            signal.signal(number, self._handle)

    def restore(self) -> None:
        """Put the previous handlers back, unless somebody replaced ours since."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number, previous in self._previous.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, previous)
        self._previous.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._on_signal()
        previous = self._previous.get(number, signal.SIG_DFL)
        if callable(previous):
            previous(number, frame)
        elif previous == signal.SIG_DFL:
            # Nobody else handles it: let the default action, the end of the process, take place.
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
