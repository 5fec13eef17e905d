"""What a site's policies say: bytes in, values out. No sockets, no files, no Scrapy."""

from comity.policies.ai_txt import ai_txt_from_xml, ai_txt_to_xml
from comity.policies.errors import PolicyError
from comity.policies.instructions import instructions
from comity.policies.page import Page
from comity.policies.site import Site
from comity.policies.snippets import snippet
from comity.policies.values import (
    ActionRequest,
    Agent,
    Arrangement,
    Decision,
    Fetched,
    Finding,
    Reason,
    Source,
    UseDecision,
    Verdict,
)

__all__ = [
    "ActionRequest",
    "Agent",
    "Arrangement",
    "Decision",
    "Fetched",
    "Finding",
    "Page",
    "PolicyError",
    "Reason",
    "Site",
    "Source",
    "UseDecision",
    "Verdict",
    "ai_txt_from_xml",
    "ai_txt_to_xml",
    "instructions",
    "snippet",
]
