"""The property Data Mining of PLUS, in the XMP of images, video and PDF files.

The supported features and every reading of an open point are in docs/plus.md.
"""

from comity.policies.document.document import Content
from comity.policies.formats.format import NO_STATEMENTS, Format, Response, Statements
from comity.policies.formats.plus.data_mining import statements
from comity.policies.formats.plus.rules import RULES

# Everything below `tdm` in the vocabulary of short strings.
_TRAINING = '"train", "train-ai", "ai-train", "train-genai", "genai", "ai", "ai-all", "ai-output"'
_OTHERS = (
    '"ai-use", "inference", "ai-input", "ai-index", "translate", "analyze", "describe", "evaluate",'
    ' "extract", "transcribe", "summarize", "rephrase", "return", "cite", "clip", "manipulate"'
)
VOCABULARY = f"""
[vocabulary.plus]
title = "PLUS Data Mining"
specification = "PLUS LDF XMP"
revision = "IPTC Photo Metadata 2023.1"
section = ""

[vocabulary.plus.terms]
data-mining = {{}}
data-mining-except-search = {{}}
aiml-training = {{}}
genaiml-training = {{}}

[[relation]]
uses = ["tdm", "all", "bots"]
kind = "within"
terms = ["plus:data-mining"]
why = "DMI-ALLOWED permits mining, by each of its names, and no other use."

[[relation]]
uses = [{_TRAINING}, {_OTHERS}, "search", "index"]
kind = "touches"
terms = ["plus:data-mining"]
why = "DMI-PROHIBITED refuses mining and its parts. Search engines may not index then."

[[relation]]
uses = ["tdm", "all", "bots", {_TRAINING}, {_OTHERS}]
kind = "touches"
terms = ["plus:data-mining-except-search"]
why = "Mining is refused, except to index for a search engine."

[[relation]]
uses = ["tdm", "all", "bots", {_TRAINING}]
kind = "touches"
terms = ["plus:aiml-training", "plus:genaiml-training"]
why = "A refusal of training, of generative models too, refuses training and all uses with it."
"""


def read_document(content: Content, response: Response) -> Statements:
    """Read the XMP of an image, a video, a sound or a PDF file."""
    if not content.is_media:
        return NO_STATEMENTS
    return Statements(statements(content.body))


FORMAT = Format(
    name="plus",
    rules=RULES,
    title="PLUS Data Mining",
    specification="PLUS LDF XMP",
    summary="XMP of images, video and PDF",
    read_document=read_document,
    vocabulary=VOCABULARY,
)
