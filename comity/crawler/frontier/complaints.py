"""Lines in the log about failures of a storage that is tried again and again."""

from __future__ import annotations

import logging
from time import monotonic

logger = logging.getLogger(__name__)

EACH = 60.0  # seconds between two lines


class Complaints:
    """Logs failures of a storage, at most one each minute."""

    def __init__(self, setting: str) -> None:
        """`setting`: the setting that names the storage."""
        self._setting = setting
        self._next = 0.0  # monotonic seconds

    def log(self, text: str) -> None:
        """Log this failure, unless the last line is less than a minute old."""
        if monotonic() >= self._next:
            self._next = monotonic() + EACH
            logger.error("%(setting)s: %(text)s", {"setting": self._setting, "text": text})
