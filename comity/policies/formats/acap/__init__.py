"""ACAP 1.0, Implementation Version: permissions and prohibitions of usages in robots.txt.

usages      what can be permitted, and with which qualifiers
grammar     the fields, records and definitions of a file
resolution  which of them decide for one agent and resource
What is supported, and every reading of an open point, stands in docs/acap.md."""

from comity.policies.formats.acap.grammar import ACTIONS, Acap, Field, parse
from comity.policies.formats.acap.resolution import Answer, Matching, Rules
from comity.policies.formats.acap.usages import BASIC_USAGES, OTHER, USAGES

__all__ = ["ACTIONS", "BASIC_USAGES", "OTHER", "USAGES", "Acap", "Answer", "Field", "Matching", "Rules", "parse"]
