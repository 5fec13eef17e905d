"""Robots meta elements and X-Robots-Tag, with the attribute data-nosnippet.

The supported features and every reading of an open point are in docs/robots-meta.md.
"""

from functools import lru_cache

from comity.policies.agent import Agent
from comity.policies.answers.decision import Reason, Source, Verdict
from comity.policies.answers.element_rule import ACTIONS, ALL, ElementRule
from comity.policies.document.document import Content
from comity.policies.formats.format import ElementRuleSet, Format, Headers, Response, Statements
from comity.policies.formats.robots_meta.authoring import AUTHORING
from comity.policies.formats.robots_meta.directives import header, markup
from comity.policies.formats.robots_meta.rules import RULES
from comity.policies.vocabulary.table import Vocabulary

NO_SNIPPET = "attribute data-nosnippet"  # the `part` of a source


def read_headers(headers: Headers, response: Response) -> Statements:
    """Read the X-Robots-Tag fields of one response."""
    values = headers[b"x-robots-tag"]
    return Statements(*header(values, response.agent.token, now=response.now, url=response.url))


def read_document(content: Content, response: Response) -> Statements:
    """Read the meta elements of a page."""
    return Statements(*markup(content, response.agent.token, now=response.now, url=response.url))


def page_elements(content: Content, agent: Agent) -> ElementRuleSet | None:
    """Return the refusals by `data-nosnippet`, which are those of `nosnippet` for one element.

    None means that the page has no such attribute. Actions of ai.txt are not among the refused
    uses, because they would refuse more (META-3).
    """
    if not content.is_html or b"data-nosnippet" not in content.octets:
        return None
    return ElementRuleSet((_no_snippet(agent.vocabulary),), _reason)


@lru_cache(maxsize=16)
def _no_snippet(vocabulary: Vocabulary) -> ElementRule:
    """Return the rule of `data-nosnippet`.

    It is one cached object, so that joined pages have this rule once.
    """
    actions = {action.lower() for action in ACTIONS}
    uses = (
        use
        for use in vocabulary.uses
        if "nosnippet" in vocabulary.related("robots-meta", use).words
    )
    return ElementRule(
        agents=(ALL,),
        path="/",
        file_type="html",
        element="[data-nosnippet]",
        verdict=Verdict.DENY,
        actions=frozenset(use for use in uses if use not in actions),
    )


def _reason(rule: ElementRule, url: str) -> Reason:
    return Reason(rule="robots-meta.disallow", source=Source(url=url, part=NO_SNIPPET))


FORMAT = Format(
    name="robots-meta",
    rules=RULES,
    title="robots meta elements and X-Robots-Tag",
    specification="none; search engines document them",
    summary="directives that refuse or limit, such as noai, in pages and header fields",
    header_fields=(b"x-robots-tag",),
    read_headers=read_headers,
    read_document=read_document,
    page_elements=page_elements,
    of_images={
        "robots-meta:noimageai": "robots-meta:noai",
        "robots-meta:noimageindex": "robots-meta:noindex",
    },
    authoring=AUTHORING,
)
