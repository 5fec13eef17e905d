"""The policies of a site: bytes in, values out. No sockets, no files, no Scrapy."""

from comity.policies.agent import Agent, Arrangement
from comity.policies.answers.decision import (
    ActionRequest,
    Condition,
    Decision,
    Finding,
    Reason,
    Source,
    UseDecision,
    Verdict,
)
from comity.policies.answers.errors import PolicyError
from comity.policies.answers.fetched import Fetched
from comity.policies.document.offer import Offer, Price
from comity.policies.document.snippet import snippet
from comity.policies.formats.ai_txt.conversion import ai_txt_from_xml, ai_txt_to_xml
from comity.policies.page import Page
from comity.policies.prompt import instructions
from comity.policies.site import Site

__all__ = [
    "ActionRequest",
    "Agent",
    "Arrangement",
    "Condition",
    "Decision",
    "Fetched",
    "Finding",
    "Offer",
    "Page",
    "PolicyError",
    "Price",
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
