"""Check whether the elements in rules occur in sample pages."""

from __future__ import annotations

from collections.abc import Iterator

from comity.authoring.source import SiteSource, SourceFile
from comity.policies import Finding
from comity.policies.answers.element_rule import ALL, EVERY_TYPE, ElementRule
from comity.policies.document.document import Content
from comity.policies.elements.coverage import covered
from comity.policies.syntax.path_patterns import covers, normal_target
from comity.policies.syntax.printable import printable
from comity.policies.syntax.urls import target_of

MAX_PAGES = 20  # the maximum number of the site's own pages that are used as samples


def check_samples(source: SiteSource, samples: tuple[SourceFile, ...]) -> Iterator[Finding]:
    """Yield a finding for each rule about an element if no sample page has such an element.

    `samples` are samples for all rules. In addition, the site's own pages are samples for the rules
    with a path that matches theirs. A rule that is tried on no page has no finding."""
    for rules in source.site.element_rules:
        element_rules = [
            rule
            for rule in rules.rules
            if rule.element != ALL and rule.file_type in (EVERY_TYPE, "html")
        ]
        looked_at: dict[ElementRule, int] = {}
        matched: set[tuple[str, str]] = set()
        for page in (*samples, *source.pages[:MAX_PAGES]):
            target = normal_target(target_of(page.url))
            of_page = [
                rule for rule in element_rules if page in samples or covers(rule.path, target)
            ]
            for part in covered(Content(page.fetched.headers, page.fetched.body), of_page):
                looked_at[part.rule] = looked_at.get(part.rule, 0) + 1
                if part.nodes or part.is_whole:
                    matched.add((part.rule.file_type, part.rule.element))
        reported: set[tuple[int, str]] = set()
        for rule, pages in looked_at.items():
            if (rule.file_type, rule.element) not in matched and (
                rule.line,
                rule.element,
            ) not in reported:
                reported.add((rule.line, rule.element))
                reason = rules.reason_of(rule, "")
                element = printable(rule.element.encode("utf-8", "replace"))
                searched = "the sample page" if pages == 1 else f"any of the {pages} sample pages"
                message = f"`{element}` selects nothing in {searched}. Check the selector."
                yield Finding(
                    rule="comity.unmatched-element",
                    message=message,
                    url=reason.source.url,
                    line=reason.source.line,
                )
