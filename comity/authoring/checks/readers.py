"""Lines of robots.txt by which other readers decide otherwise (`comity.crawler.commands.second_opinion`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from comity.authoring.sites import Source, SourceFile
from comity.crawler.commands.second_opinion import sentences
from comity.policies import Finding
