"""A wrapper for formats of other packages: if one raises, its policy counts as unreadable.

Every call of such a format goes through this module. If the call raises, the request, or every use,
is refused by rule `comity.format`, and the reason names the format and the exception.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial, wraps
from typing import Any, TypeVar, cast

from comity.policies.agent import Agent
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
from comity.policies.answers.element_rule import ElementRule
from comity.policies.answers.fetched import Fetched
from comity.policies.answers.request import Facts
from comity.policies.answers.rule import RULES
from comity.policies.document.document import Content
from comity.policies.formats.authoring import Authoring, FileKind
from comity.policies.formats.file import SiteFiles
from comity.policies.formats.format import (
    AgentReading,
    Capture,
    ElementRuleSet,
    Format,
    PageSource,
    Resource,
    Response,
    SiteReading,
    Statements,
    UseSource,
    WellKnown,
    nothing_more,
)
from comity.policies.syntax.printable import printable
from comity.policies.syntax.windows import Limits
from comity.policies.vocabulary.statement import Statement
from comity.policies.vocabulary.table import Vocabulary

T = TypeVar("T")


class FormatError(Exception):
    """The rules for the elements of a page cannot be read, so every use of it is refused."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


def distrusted(trusting: Format) -> Format:
    """Return the same format with every call wrapped, so that none raises."""
    return trusting._replace(
        files=tuple(_fill_refusals(trusting, file) for file in trusting.files),
        read_site=trusting.read_site and _wrap_read_site(trusting),
        read_headers=trusting.read_headers
        and _wrap_statements(trusting.name, trusting.read_headers),
        read_document=trusting.read_document
        and _wrap_statements(trusting.name, trusting.read_document),
        read_documents=trusting.read_documents
        and _wrap_statements(trusting.name, trusting.read_documents),
        page_elements=trusting.page_elements and _wrap_page_elements(trusting),
        conclude=trusting.conclude
        if trusting.conclude is nothing_more
        else _wrap_conclude(trusting),
        lifetime=trusting.lifetime and _with_fallback(float("inf"), trusting.lifetime),
        replay=_with_fallback([], trusting.replay),
        authoring=_wrap_authoring(trusting),
    )


def failure(name: str, url: str, error: Exception) -> Reason:
    """Return the reason of a refusal after a call has raised."""
    text = printable(f"format {name}: {type(error).__name__}: {error}")
    return Reason(rule="comity.format", source=Source(url=url, part="format", text=text))


def refusal(name: str, url: str, error: Exception) -> Decision:
    """Return the refusal of a request after a call has raised."""
    return Decision(verdict=Verdict.DENY, reasons=(failure(name, url, error),))


def _check(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Return the reasons unchanged.

    ValueError: there are no reasons, or a reason names a rule that is not declared.
    """
    if not reasons:
        raise ValueError("a decision without a reason")
    if unknown := next((reason.rule for reason in reasons if reason.rule not in RULES), None):
        raise ValueError(f"no rule `{unknown}` is declared")
    return reasons


def _check_statements(statements: Statements) -> Statements:
    """Return the statements with all sequences as tuples.

    TypeError, ValueError: a part would be ignored, because its word or rule is not declared.
    """
    if not isinstance(statements, Statements):
        raise TypeError(f"{statements!r} is no Statements")
    statements = statements._replace(
        **{field: tuple(getattr(statements, field)) for field in _SEQUENCES}
    )
    words = Vocabulary.shipped().words
    for statement in statements.statements:
        vocabulary, _, word = statement.term.partition(":")
        if vocabulary not in words or word not in words[vocabulary].narrows:
            raise ValueError(f"no word `{statement.term}` is declared")
        if statement.rule not in RULES:
            raise ValueError(f"no rule `{statement.rule}` is declared")
    if statements.refused:
        _check(statements.refused)
    # The statements must be hashable, because pages with equal statements share one cached answer.
    hash((statements.statements, statements.refused))
    return statements


_SEQUENCES = ("statements", "findings", "documents", "refused")


def _with_fallback(otherwise: Any, call: Callable[..., T]) -> Callable[..., T]:
    """Return a function that calls `call`, and returns `otherwise` if the call raises."""

    @wraps(call)
    def careful(*arguments: Any) -> T:
        try:
            return call(*arguments)
        except Exception:
            return cast("T", otherwise)

    return careful


def _wrap_authoring(trusting: Format) -> Authoring:
    """Return the `Authoring` of a format with every call wrapped.

    If a check raises, the result is one finding that reports the exception.
    """
    name, authoring = trusting.name, trusting.authoring

    def check_site(files: SiteFiles) -> list[Finding]:
        return _findings(
            name, files.origin, lambda: authoring.check_site(files) if authoring.check_site else ()
        )

    def check_document(content: Content, url: str) -> list[Finding]:
        return _findings(
            name,
            url,
            lambda: authoring.check_document(content, url) if authoring.check_document else (),
        )

    def careful(kind: FileKind) -> FileKind:
        findings = partial(_findings_of_kind, name, kind)
        return kind._replace(
            is_meant=_with_fallback(otherwise=False, call=kind.is_meant), findings=findings
        )

    return authoring._replace(
        check_site=authoring.check_site and check_site,
        check_document=authoring.check_document and check_document,
        kinds=tuple(map(careful, authoring.kinds)),
        fixes={rule: _with_fallback(None, mend) for rule, mend in authoring.fixes.items()},
    )


def _findings_of_kind(name: str, kind: FileKind, body: bytes, url: str) -> list[Finding]:
    return _findings(name, url, lambda: kind.findings(body, url))


def _findings(name: str, url: str, call: Callable[[], Iterable[Finding]]) -> list[Finding]:
    try:
        return [finding for finding in call() if finding.rule in RULES]
    except Exception as error:
        return [
            Finding(rule="comity.format", message=failure(name, url, error).source.text, url=url)
        ]


def _wrap_page_elements(trusting: Format) -> Callable[[Content, Agent], ElementRuleSet | None]:
    def page_elements(content: Content, agent: Agent) -> ElementRuleSet | None:
        assert trusting.page_elements
        try:
            return _elements(trusting.name, trusting.page_elements(content, agent))
        except Exception as error:
            raise FormatError(failure(trusting.name, "", error)) from error

    return page_elements


def _elements(name: str, rules: ElementRuleSet | None) -> ElementRuleSet | None:
    if rules is None:
        return None

    def reason_of(rule: ElementRule, url: str) -> Reason:
        try:
            reason = rules.reason_of(rule, url)
            _check((reason,))
        except Exception as error:
            return failure(name, url, error)
        return reason

    return ElementRuleSet(tuple(rules.rules), reason_of)


def _fill_refusals(trusting: Format, file: WellKnown) -> WellKnown:
    """Return the file with `refuses` filled in: None becomes all words of the format."""
    refuses = file.refuses
    if refuses is None:
        vocabularies = tomllib.loads(trusting.vocabulary).get("vocabulary", {})
        words = (
            (name, word) for name, entry in vocabularies.items() for word in entry.get("terms", {})
        )
        refuses = tuple(f"{name}:{word}" for name, word in words)
    return file._replace(refuses=refuses, rejection=_wrap_rejection(trusting.name, file))


def _wrap_rejection(name: str, file: WellKnown) -> Callable[[Fetched], str]:
    def rejection(fetched: Fetched) -> str:
        try:
            return file.rejection(fetched)
        except Exception as error:
            return f"format {name}: {type(error).__name__}: {error}"

    return rejection


def _wrap_statements(name: str, hook: Callable[..., Statements]) -> Callable[..., Statements]:
    def careful(*arguments: Any) -> Statements:
        try:
            return _check_statements(hook(*arguments))
        except Exception as error:
            last = arguments[-1]
            return Statements(
                refused=(
                    failure(name, last.url if isinstance(last, Response) else str(last), error),
                )
            )

    return careful


def _wrap_conclude(trusting: Format) -> Callable[[Sequence[object]], Statements]:
    def conclude(states: Sequence[object]) -> Statements:
        try:
            return _check_statements(trusting.conclude(states))
        except Exception as error:
            return Statements(refused=(failure(trusting.name, "", error),))

    return conclude


def _wrap_read_site(trusting: Format) -> Callable[[SiteFiles], SiteReading | None]:
    def read_site(site: SiteFiles) -> SiteReading | None:
        assert trusting.read_site
        try:
            reading = trusting.read_site(site)
            return None if reading is None else _Site(trusting.name, site.origin, reading)
        except Exception as error:
            return _FailedSite(trusting.name, site.origin, error)

    return read_site


class _FailedSite(SiteReading):
    """The reading of a site whose `read_site` raised."""

    def __init__(self, name: str, origin: str, error: Exception) -> None:
        self._reading = _Failed(name, origin, error)

    def for_agent(self, agent: Agent) -> AgentReading:
        return self._reading


class _Failed(AgentReading):
    """A reading that refuses every request and every use, because the statements are unknown."""

    restricts_access = True

    def __init__(self, name: str, origin: str, error: Exception) -> None:
        self._refusal = refusal(name, origin, error)

    def access(
        self, target: str, sent: str, facts: Facts, now: datetime | None, page: object = None
    ) -> Decision:
        return self._refusal

    def considered(self, target: str, facts: Facts) -> Iterable[Reason]:
        return self._refusal.reasons

    def statements(self, resource: Resource) -> Statements:
        return Statements(refused=self._refusal.reasons)


class _Site(SiteReading):
    """A site's reading with every call wrapped."""

    def __init__(self, name: str, origin: str, reading: SiteReading) -> None:
        self._name = name
        self._origin = origin
        self._reading = reading
        # If one of these raises, the site counts as unreadable. Without the names an agent would be
        # missed, and without the references a file.
        self.crawler_names = frozenset(reading.crawler_names)
        self.referred_files = tuple(reading.referred_files)

    def for_agent(self, agent: Agent) -> AgentReading | None:
        try:
            reading = self._reading.for_agent(agent)
            return None if reading is None else _Reading(self._name, self._origin, reading)
        except Exception as error:
            return _Failed(self._name, self._origin, error)

    def clean(self, target: str) -> str:
        cleaned = _with_fallback(target, self._reading.clean)(target)
        return cleaned if isinstance(cleaned, str) else target

    @property
    def findings(self) -> tuple[Finding, ...]:  # type: ignore[override]
        return _with_fallback((), lambda: tuple(self._reading.findings))()

    @property
    def sitemaps(self) -> tuple[str, ...]:  # type: ignore[override]
        return _with_fallback((), lambda: tuple(self._reading.sitemaps))()

    @property
    def element_rules(self) -> ElementRuleSet | None:  # type: ignore[override]
        return _with_fallback(None, lambda: _elements(self._name, self._reading.element_rules))()


class _Reading(AgentReading):
    """An agent's reading with every call wrapped.

    If `access` raises, the request is refused. If `statements`, `sources` or `element_rules`
    raises, every use of the page is refused. If `limits` raises, the limits count as unreadable.
    """

    restricts_access = True
    depends_on_time = True  # the wrapped format might state this wrongly

    def __init__(self, name: str, origin: str, reading: AgentReading) -> None:
        self._name = name
        self._origin = origin
        self._reading = reading
        self.depends_on_request = reading.depends_on_request
        self.references = tuple(reading.references)
        self.documents = tuple(reading.documents)
        self.rates = reading.rates
        self._is_same_for_pages = bool(reading.is_same_for_pages)

    @property
    def is_same_for_pages(self) -> bool:
        return self._is_same_for_pages

    def access(
        self, target: str, sent: str, facts: Facts, now: datetime | None, page: object = None
    ) -> Decision | None:
        try:
            decision = self._reading.access(target, sent, facts, now, page)
            if decision is not None:
                _check(decision.reasons)
        except Exception as error:
            return refusal(self._name, self._origin, error)
        return decision

    def considered(self, target: str, facts: Facts) -> Iterable[Reason]:
        try:
            reasons = tuple(self._reading.considered(target, facts))
            return _check(reasons) if reasons else ()
        except Exception as error:
            return (failure(self._name, self._origin, error),)

    def limits(self, target: str) -> Limits | None:
        return _with_fallback(
            Limits(f"{self._origin} {self._name}", (), None, unreadable=True), self._reading.limits
        )(target)

    def requests(self) -> Iterable[ActionRequest]:
        return _with_fallback((), lambda: tuple(self._reading.requests()))()

    def conditions(self) -> Iterable[Condition]:
        return _with_fallback((), lambda: tuple(self._reading.conditions()))()

    def statements(self, resource: Resource) -> Statements:
        try:
            statements = _check_statements(self._reading.statements(resource))
            hash(statements)
        except Exception as error:
            return Statements(refused=(failure(self._name, resource.url, error),))
        return statements

    def everywhere(self) -> tuple[Statement, ...]:
        return _with_fallback((), lambda: tuple(self._reading.everywhere()))()

    def sources(self, targets: Iterable[str], capture: Capture) -> Sequence[PageSource]:
        try:
            return [
                _Source(self._name, capture.url, source)
                for source in self._reading.sources(targets, capture)
            ]
        except Exception as error:
            return [_Refusing(failure(self._name, capture.url, error))]

    def site_sources(self, purposes: Iterable[str] | None) -> Sequence[UseSource]:
        return _with_fallback((), lambda: tuple(self._reading.site_sources(purposes)))()

    def element_rules(self, target: str, content: Content) -> ElementRuleSet | None:
        """Return the rules about parts of the page.

        FormatError: they cannot be read, so all uses of the page are refused.
        """
        try:
            return _elements(self._name, self._reading.element_rules(target, content))
        except Exception as error:
            raise FormatError(failure(self._name, self._origin + target, error)) from error

    def element_rules_everywhere(self) -> ElementRuleSet | None:
        return _with_fallback(
            None, lambda: _elements(self._name, self._reading.element_rules_everywhere())
        )()


class _Refusing:
    """A source that refuses every use."""

    named_uses: Iterable[str] = ()
    required_resources: tuple[str, ...] = ()
    dated: tuple[str, ...] = ()

    def __init__(self, reason: Reason) -> None:
        self._decision = UseDecision(verdict=Verdict.DENY, stated=True, reasons=(reason,))

    def decide(self, use: str) -> UseDecision | None:
        return self._decision

    def limits(self, use: str) -> Sequence[Any]:
        return ()


class _Source:
    """A source of decisions with every call wrapped."""

    def __init__(self, name: str, url: str, source: PageSource) -> None:
        self._name = name
        self._url = url
        self._source = source
        self.named_uses = tuple(source.named_uses)
        self.required_resources = tuple(source.required_resources)
        self.dated = tuple(source.dated)

    def decide(self, use: str) -> UseDecision | None:
        try:
            # If the limits of a use cannot be read, the use is not permitted.
            tuple(self._source.limits(use))
            decision = self._source.decide(use)
            if decision is not None:
                _check(decision.reasons)
        except Exception as error:
            return _Refusing(failure(self._name, self._url, error)).decide(use)
        return decision

    def limits(self, use: str) -> Sequence[Any]:
        return _with_fallback((), lambda: tuple(self._source.limits(use)))()
