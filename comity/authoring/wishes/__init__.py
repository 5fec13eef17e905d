"""The wishes of publishers: one list for `comity new`, the docs, the workbench and editors.

WISHES                      the list
find_wish("no training")    a wish by its words (matching.py)
write_files(...)            the files that state it (files.py)"""

from __future__ import annotations

from comity.authoring.wishes.copies import LIMITED_COPIES, NO_SNIPPETS, SHORT_SNIPPETS
from comity.authoring.wishes.everything import EVERYTHING
from comity.authoring.wishes.requests import (
    API_FOR_RESEARCH,
    EVERYBODY_BUT,
    NOBODY_BUT,
    SLOWER,
    TEXT_BUT_NO_IMAGES,
)
from comity.authoring.wishes.training import (
    ARCHIVES_BUT_NO_TRAINING,
    NO_SEARCH_BUT_TRAINING,
    NO_TRAINING,
    NO_TRAINING_BUT_SEARCH,
)

WISHES = (
    NO_TRAINING,
    NO_TRAINING_BUT_SEARCH,
    NO_SEARCH_BUT_TRAINING,
    ARCHIVES_BUT_NO_TRAINING,
    NO_SNIPPETS,
    SHORT_SNIPPETS,
    LIMITED_COPIES,
    TEXT_BUT_NO_IMAGES,
    SLOWER,
    NOBODY_BUT,
    EVERYBODY_BUT,
    API_FOR_RESEARCH,
    EVERYTHING,
)
