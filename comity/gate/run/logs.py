"""Logs that nothing hidden reaches (SEC-4): hosts of links and texts of errors may hold what a terminal obeys, or
what changes how other text is shown."""

from __future__ import annotations

import logging

from comity.policies.syntax.printable import unhidden


class Unhidden(logging.Filter):
    """Replaces hidden characters in the message and the traceback of each record, whoever logs it."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if (clean := unhidden(message)) != message:
            record.msg, record.args = clean, ()
        if record.exc_info and not record.exc_text:
            record.exc_text = _FORMATTER.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = unhidden(record.exc_text)
        return True


_FORMATTER = logging.Formatter()


def show_nothing_hidden() -> None:
    """Replace hidden characters in any of the logs that there are now."""
    for handler in logging.root.handlers:
        if not any(isinstance(present, Unhidden) for present in handler.filters):
            handler.addFilter(Unhidden())
