"""Keep hidden characters out of logs (SEC-4).

Hosts of links and texts of errors may contain control sequences of terminals, or characters that
change the display of other text."""

from __future__ import annotations

import logging

from comity.policies.syntax.printable import unhidden


class Unhidden(logging.Filter):
    """A filter that replaces hidden characters in the message and the traceback of each record."""

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
    """Replace hidden characters in all logs, through the present handlers of the root logger."""
    for handler in logging.root.handlers:
        if not any(isinstance(present, Unhidden) for present in handler.filters):
            handler.addFilter(Unhidden())
