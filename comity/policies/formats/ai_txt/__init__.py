"""ai.txt: the uses that AI may make of single elements of a site's resources.

    kind_of(body)                  kinds.py: which of the two formats named ai.txt it is, if any
    parse(text) -> AiTxt           grammar.py: the element-level language
    AiTxt.for_agent(token)         values.py: the rules that bind an agent, by resource
    completions(text, position)    authoring.py: the words that can be written at a position
    to_text, to_xml, from_xml      forms.py: the text and XML forms of the element-level language
    spawning(text) -> Spawning     spawning.py: refusals of training by file type

Two formats are served under this name: the element-level language, and Spawning's opt-out. The
supported features and every reading of an open point are in docs/ai-txt.md.
"""

from comity.policies.answers.element_rule import ALL
from comity.policies.formats.ai_txt.authoring import AUTHORING, completions
from comity.policies.formats.ai_txt.file import PATH
from comity.policies.formats.ai_txt.forms import from_xml, to_text, to_xml
from comity.policies.formats.ai_txt.grammar import parse
from comity.policies.formats.ai_txt.kinds import kind_of
from comity.policies.formats.ai_txt.rules import RULES
from comity.policies.formats.ai_txt.site import AiSite
from comity.policies.formats.ai_txt.spawning import Spawning, spawning
from comity.policies.formats.ai_txt.values import AgentElementRules, AiTxt
from comity.policies.formats.format import Format, WellKnown

FORMAT = Format(
    name="ai-txt",
    rules=RULES,
    title="ai.txt",
    specification="paper of 2025; Spawning's files of that name",
    summary="rules for elements of HTML, JSON and XML, and for types of files",
    files=(
        WellKnown(
            PATH,
            has_element_rules=True,
            refuses=(ALL,),
            unreachable_rule="ait.unreachable",
        ),
    ),
    read_site=AiSite,
    authoring=AUTHORING,
)

__all__ = [
    "FORMAT",
    "AgentElementRules",
    "AiTxt",
    "Spawning",
    "completions",
    "from_xml",
    "kind_of",
    "parse",
    "spawning",
    "to_text",
    "to_xml",
]
