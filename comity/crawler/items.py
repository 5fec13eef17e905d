"""Which pages an item came from, and the tag written into whatever class it is."""

from __future__ import annotations

from comity.policies import Page


class ItemPages:
    """Item -> the pages that it came from, from the spider middleware to the item pipeline."""

    wanted = False  # the item pipeline is there to take them out again

    def __init__(self) -> None:
        self._pages: dict[int, tuple[object, list[Page | None]]] = {}
