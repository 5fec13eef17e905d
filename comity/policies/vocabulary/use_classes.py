"""The usual classes of uses, in the words of everyday language."""

from __future__ import annotations

from typing import NamedTuple


class UseClass(NamedTuple):
    """A class of uses.

    Attributes:
        name: The name for programs, which is the topic of answers about the class.
        use: The use that represents the class, a name in the table of vocabularies.
        verb: What a crawler may do with pages, as the words after "may": "train AI with pages".
        verb_of_one: The verb for a single page, as the words after "may": "train AI with it".
    """

    name: str
    use: str
    verb: str
    verb_of_one: str


CLASSES = (
    UseClass("index", "index", "put pages into an index", "put it into an index"),
    UseClass("search", "search", "show pages as results of a search", "show it in search results"),
    UseClass("snippets", "present-snippet", "show snippets of pages", "show snippets of it"),
    UseClass("copies", "present", "show whole pages to others", "show all of it to others"),
    UseClass("training", "train-ai", "train AI with pages", "train AI with it"),
    UseClass("answers", "ai-input", "have AI answer from pages", "have AI answer from it"),
    UseClass("archive", "preserve", "keep pages in an archive", "keep it in an archive"),
    UseClass("mining", "tdm", "mine pages for text and data", "mine it for text and data"),
)
