"""Training and Data Mining in the C2PA manifests of images, video and PDF files.

The supported features and every reading of an open point are in docs/c2pa.md.
"""

from comity.policies.document.document import Content
from comity.policies.formats.c2pa.assertion import statements
from comity.policies.formats.c2pa.rules import RULES
from comity.policies.formats.format import NO_STATEMENTS, Format, Response, Statements

_WHOLE = '"tdm", "all", "bots", "ai", "ai-all", "genai", "ai-output"'
_TRAINING = '"train", "train-ai", "ai-train", "train-genai"'
_INFERENCE = (
    '"ai-use", "inference", "ai-input", "ai-index", "translate", "analyze", "describe", "evaluate",'
    ' "extract", "transcribe", "summarize", "rephrase", "return", "cite", "clip", "manipulate"'
)
VOCABULARY = f"""
[vocabulary.cawg]
title = "Training and Data Mining in C2PA manifests"
specification = "CAWG Training and Data Mining"
revision = "1.1"
section = ""

[vocabulary.cawg.terms]
data-mining = {{}}
ai-training = {{}}
ai-generative-training = {{}}
ai-inference = {{}}

[[relation]]
uses = [{_WHOLE}, {_TRAINING}, {_INFERENCE}, "search", "index"]
kind = "touches"
terms = ["cawg:data-mining"]
why = "Training, inference and indexes mine the file."

[[relation]]
uses = [{_WHOLE}, {_TRAINING}]
kind = "touches"
terms = ["cawg:ai-training", "cawg:ai-generative-training"]
why = "A refusal of training, of generative models too, refuses training and all uses with it."

[[relation]]
uses = [{_WHOLE}, {_INFERENCE}]
kind = "touches"
terms = ["cawg:ai-inference"]
why = "The file must not be the input of a model."
"""


def read_document(content: Content, response: Response) -> Statements:
    """Read the manifests of an image, a video, a sound or a PDF file."""
    if not content.is_media:
        return NO_STATEMENTS
    return Statements(statements(content.body))


FORMAT = Format(
    name="c2pa",
    rules=RULES,
    title="C2PA Training and Data Mining",
    specification="CAWG Training and Data Mining 1.1",
    summary="manifests in images, video and PDF",
    read_document=read_document,
    vocabulary=VOCABULARY,
)
