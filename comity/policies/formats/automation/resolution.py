"""The group of an automation-preferences.txt that speaks for a request, and its refusals.

Rules(automation, token, host)       the groups that bind one agent on one host
Rules.group(target)                  the one that speaks (core, scope-and-applicability)
refusals(group, facts, purposes)     what it refuses
limits(group, origin)                how often it may be asked"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from comity.policies.answers.request import API, XHR, Facts, Session
from comity.policies.formats.automation.directives import (
    PATH,
    SESSION_VALIDATION,
    Directives,
    DirectiveValue,
    Group,
    UrlPattern,
)
from comity.policies.formats.automation.grammar import Automation
from comity.policies.formats.automation.value_syntax import host_pattern
from comity.policies.syntax.path_patterns import PatternIndex, covers, normal_target, sample
from comity.policies.syntax.urls import host_names, origin_of, spellings
from comity.policies.syntax.windows import Limits, StatedLimit


def host_matches(pattern: str, host: str) -> bool:
    """Both as `host_pattern` makes them. A port counts where the pattern has one."""
    return any(_matches(pattern, name) for name in host_names(host))


def _matches(pattern: str, host: str) -> bool:
    if pattern == host:
        return True
    name, _, port = (
        pattern.partition(":") if not pattern.startswith("[") else pattern.partition("]:")
    )
    host_name, _, own_port = (
        host.partition(":") if not host.startswith("[") else host.partition("]:")
    )
    if port and port != own_port:
        return False
    return (
        covers(f"{name}$", host_name)
        if "*" in name
        else name.removesuffix("]") == host_name.removesuffix("]")
    )


class _Scopes:
    """Scopes of equal rank by their host, and the groups that they belong to."""

    def __init__(self, scopes: list[tuple[str, bool, int]]) -> None:
        """`scopes`: pattern, whether the group names the agent, number of the group; of equals the first decides."""
        self._index = PatternIndex(
            [pattern for pattern, _, _ in scopes],
            [number for number, (_, by_name, _) in enumerate(scopes) if by_name],
        )
        self._groups = array("H", (group for _, _, group in scopes))

    def best(self, target: str) -> int:
        """-1: none matches."""
        scope = self._index.best(target)
        return self._groups[scope] if scope >= 0 else -1

    def all(self, target: str) -> list[int]:
        return [self._groups[scope] for scope in self._index.all(target)]


class Rules:
    """The groups that bind one agent on one host, ready to be asked for a target."""

    def __init__(self, automation: Automation, token: str, host: str) -> None:
        """`host`: of the site's origin, with its port unless it is the default one."""
        self._groups = automation.groups
        token, host = token.lower(), host_pattern(host) or host.lower()
        by_host: dict[bool, list[tuple[str, bool, int]]] = {
            True: [],
            False: [],
        }  # whether the host is named exactly
        rest: list[tuple[bool, bool, int]] = []  # groups without a scope
        self.has_limits = False  # whether one of them states limits
        for number, group in reversed(list(enumerate(self._groups))):  # the later one wins
            exactness = exactness_of(group.hosts, host)
            if exactness is None or not (
                group.agents is None or "*" in group.agents or token in group.agents
            ):
                continue
            by_name = group.agents is not None and token in group.agents
            if group.directives.request_limit or group.directives.concurrent_limit:
                self.has_limits = True
            if not group.scopes:
                rest.append((exactness, by_name, number))
            for scope in group.scopes:
                scope_exactness = exactness_of((scope.host,), host) if scope.host else False
                if scope_exactness is not None:
                    by_host[exactness or scope_exactness].append((scope.path, by_name, number))
        self._scopes = [
            _Scopes(by_host[exactness]) for exactness in (True, False) if by_host[exactness]
        ]
        self._rest = [number for *_, number in sorted(rest, reverse=True)]
        self.is_stating = bool(self._scopes or self._rest)  # whether anything may bind the agent

    def group(self, target: str) -> Group | None:
        """The group that speaks for path and query; None: none matches."""
        return self._group(normal_target(target))

    def _group(self, target: str) -> Group | None:
        for scopes in self._scopes:
            number = scopes.best(target)
            if number >= 0:
                return self._groups[number]
        return self._groups[self._rest[0]] if self._rest else None

    def speaking(self) -> Iterator[tuple[Group, tuple[UrlPattern, ...]]]:
        """Yield each group that speaks for any target, with the scopes for which it does; (): for what no scope covers."""
        for group in self._groups:
            scopes = tuple(
                scope for scope in group.scopes if self._group(sample(scope.path)) is group
            )
            if scopes or (not group.scopes and self._group(sample("/")) is group):
                yield group, scopes

    def matching(self, target: str) -> list[Group]:
        """All groups that match, the one that speaks first."""
        target = normal_target(target)
        numbers = [number for scopes in self._scopes for number in scopes.all(target)] + self._rest
        return [self._groups[number] for number in dict.fromkeys(numbers)]


def exactness_of(patterns: Iterable[str] | None, host: str) -> bool | None:
    """True where one of the patterns is the host, and not a wildcard or none at all; None: none matches it."""
    if patterns is None:
        return False
    matching = [pattern for pattern in patterns if host_matches(pattern, host)]
    return any("*" not in pattern for pattern in matching) if matching else None


class Refusal(NamedTuple):
    """A rule by which a group, or an annotation, does not permit a request."""

    rule: str
    directive: DirectiveValue[Any] | None  # None: the group leaves the directive out
    from_annotation: bool = False


def refusals(
    group: Group | None,
    facts: Facts,
    purposes: tuple[str, ...],
    now: datetime,
    annotation: Directives | None = None,
    *,
    host: str = "",
) -> list[Refusal]:
    """The refusals of a request; []: it is permitted. Each rule stands there once, with the first line that refuses by it.

    `group`: None where none matches. `purposes`: those of the agent, which a request without its own is made for.
    `annotation`: of the page; it replaces the purposes and mechanisms that the group lists, has no say in methods and limits,
    and can only refuse more in all else. `host`: of the site, to tell its own pages from those of others; "": all are its own."""
    policy = _Policy(group, annotation or Directives())
    purposes = purposes if facts.purposes is None else facts.purposes
    parts = (
        *(policy.method(method.upper()) for method in (facts.method, *facts.overriding)),
        policy.purposes({purpose.lower() for purpose in purposes}),
        policy.automations({automation.lower() for automation in facts.automations})
        if facts.automations
        else (),
        policy.api(has_key=facts.has_key) if API in facts.kinds else (),
        *(
            policy.xhr(method.upper(), facts.referer, host)
            for method in (facts.method, *facts.overriding)
            if XHR in facts.kinds
        ),
        policy.session(facts.session, now),
        policy.limits(),
    )
    by_rule: dict[str, Refusal] = {}
    for part in parts:
        for refusal in part:
            by_rule.setdefault(refusal.rule, refusal)
    return list(by_rule.values())


class _Policy:
    """The refusals by a group and an annotation, directive by directive."""

    def __init__(self, group: Group | None, annotation: Directives) -> None:
        self._is_silent = group is None  # nothing is refused for want of a directive
        self._of_group = group.directives if group else Directives()
        self._added = annotation

    def _refused(
        self, rule: str, name: str, is_refusing: Callable[[Any], bool], *, replaces: bool = False
    ) -> Iterator[Refusal]:
        """`replaces`: what the annotation states stands instead of what the group does."""
        added = getattr(self._added, name)
        if not (replaces and added):
            yield from (
                Refusal(rule, directive)
                for directive in getattr(self._of_group, name)
                if is_refusing(directive.value)
            )
        yield from (
            Refusal(rule, directive, from_annotation=True)
            for directive in added
            if is_refusing(directive.value)
        )

    def _absent(self, rule: str, *directives: object) -> Iterator[Refusal]:
        if not (self._is_silent or any(directives)):
            yield Refusal(rule, None)

    def method(self, method: str) -> Iterator[Refusal]:
        """Core, http-method-restrictions: without the directive all are disallowed."""
        yield from (
            Refusal("automation.method", directive)
            for directive in self._of_group.allowed_methods
            if method not in directive.value
        )
        yield from self._absent("automation.method", self._of_group.allowed_methods)

    def purposes(self, purposes: set[str]) -> Iterator[Refusal]:
        """Core, purpose-declaration. All must be listed; who declares none is not one of those that are."""
        return self._refused(
            "automation.purpose",
            "allowed_purposes",
            lambda allowed: not purposes or not purposes <= allowed,
            replaces=True,
        )

    def automations(self, automations: set[str]) -> Iterator[Refusal]:
        """Extension section-3.2. All must be listed; without the directive none is."""
        rule = "automation.mechanism"
        yield from self._refused(
            rule, "allowed_automations", lambda allowed: not automations <= allowed, replaces=True
        )
        yield from self._absent(
            rule, self._of_group.allowed_automations, self._added.allowed_automations
        )

    def api(self, *, has_key: bool) -> Iterator[Refusal]:
        """Extension section-3.3: without the directive "none"."""
        yield from self._refused("automation.api", "api_automation", lambda value: value == "none")
        yield from self._absent("automation.api", self._of_group.api_automation)
        yield from self._refused(
            "automation.key",
            "api_automation",
            lambda value: value == "with-key-only" and not has_key,
        )

    def xhr(self, method: str, referer: str | None, host: str) -> Iterator[Refusal]:
        """Extension section-3.3: without the directive `allow-xhr` is "none"."""
        permitting = ("open", "read-only") if method == "GET" else ("open",)
        yield from self._refused(
            "automation.xhr", "allow_xhr", lambda value: value not in permitting
        )
        yield from self._absent("automation.xhr", self._of_group.allow_xhr)
        yield from self._refused(
            "automation.fetch-from",
            "disallow_fetch_from",
            lambda pages: _is_among(referer, pages, host),
        )

    def session(self, session: Session | None, now: datetime) -> Iterator[Refusal]:
        """Extension section-3.4. Validation and TTL speak of the session that a request has; they demand none."""
        is_human = session is not None and session.human_initiated
        yield from self._refused(
            "automation.session",
            "require_human_initiated_session",
            lambda value: value and not is_human,
        )
        if session:
            age = now - session.started_at if session.started_at else None
            yield from self._refused(
                "automation.session-validation",
                "session_validation",
                lambda value: (
                    value != "none" and SESSION_VALIDATION.get(value) not in session.carries
                ),
            )
            yield from self._refused(  # of one that begins later, by a clock that was set back, nobody knows the age
                "automation.session-ttl",
                "session_ttl",
                lambda ttl: ttl is None or age is None or not timedelta(0) <= age <= ttl,
            )

    def limits(self) -> Iterator[Refusal]:
        """Extension section-3.1: a limit of nothing."""
        directives = self._of_group
        yield from (
            Refusal("automation.none", directive)
            for directive in directives.request_limit
            if directive.value and not directive.value.requests
        )
        yield from (
            Refusal("automation.none", directive)
            for directive in directives.concurrent_limit
            if not directive.value
        )


def _is_among(page: str | None, patterns: tuple[UrlPattern, ...], host: str) -> bool:
    """True where a page is one of those that the patterns mean, or nobody knows. `host`: of patterns without one."""
    if not patterns:
        return False
    try:
        origin = origin_of(page or "")
    except ValueError:
        return True
    page_host, targets = host_pattern(origin), tuple(map(normal_target, spellings(page or "")))
    host = host_pattern(host) or page_host
    return any(
        host_matches(pattern.host or host, page_host)
        and any(covers(pattern.path, target) for target in targets)
        for pattern in patterns
    )


def limits(group: Group, origin: str, stated: Iterable[StatedLimit] = ()) -> Limits | None:
    """Return the limits on the requests of a group; None where it does not say. `origin`: of the site. `stated`: its lines."""
    rates, concurrent = group.directives.request_limit, group.directives.concurrent_limit
    if not rates and not concurrent:
        return None
    return Limits(
        key=f"{origin} {group.key}",
        windows=tuple(limit.value for limit in rates if limit.value),
        concurrent=min((limit.value for limit in concurrent), default=None),
        unreadable=any(limit.value is None for limit in rates),
        source=PATH,
        stated=tuple(stated),
    )
