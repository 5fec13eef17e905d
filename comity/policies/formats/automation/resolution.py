"""The group of an automation-preferences.txt that applies to a request, and its refusals.

ScopeRules(automation, token, host)  the groups that bind one agent on one host
ScopeRules.group(target)             the group that applies (core, scope-and-applicability)
refusals(group, facts, purposes)     the refusals of a request by the group
limits(group, origin)                the limits of the group on the rate of requests
"""

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
    """Return True if the pattern matches the host. Both are results of `host_pattern`.

    A pattern without a port matches the host on any port.
    """
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
    """Scopes of equal rank, indexed by their paths, and the groups that they belong to."""

    def __init__(self, scopes: list[tuple[str, bool, int]]) -> None:
        """Index the scopes.

        Each scope is a path pattern, True if its group names the agent, and the number of the
        group. Of equal scopes the first one decides.
        """
        self._index = PatternIndex(
            [pattern for pattern, _, _ in scopes],
            [number for number, (_, by_name, _) in enumerate(scopes) if by_name],
        )
        self._groups = array("H", (group for _, _, group in scopes))

    def best(self, target: str) -> int:
        """Return the number of the group of the best match, or -1 if no scope matches."""
        scope = self._index.best(target)
        return self._groups[scope] if scope >= 0 else -1

    def all(self, target: str) -> list[int]:
        return [self._groups[scope] for scope in self._index.all(target)]


class ScopeRules:
    """The groups that bind one agent on one host, indexed by their scopes.

    Attributes:
        has_limits: True if any of the groups limits the rate or number of requests.
        is_stating: True if any group may bind the agent.
    """

    def __init__(self, automation: Automation, token: str, host: str) -> None:
        """Index the groups.

        `token` is the agent's product token. `host` is the host of the site's origin, with the port
        unless it is the default port.
        """
        self._groups = automation.groups
        token, host = token.lower(), host_pattern(host) or host.lower()
        # True for scopes that name the host without a wildcard, False for all others -> the scopes.
        by_host: dict[bool, list[tuple[str, bool, int]]] = {True: [], False: []}
        rest: list[tuple[bool, bool, int]] = []  # groups without a scope
        self.has_limits = False
        # Reversed, because the last of equal groups applies.
        for number, group in reversed(list(enumerate(self._groups))):
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
        self.is_stating = bool(self._scopes or self._rest)

    def group(self, target: str) -> Group | None:
        """Return the group that applies to a target, or None if no group matches.

        `target` is path and query.
        """
        return self._group(normal_target(target))

    def _group(self, target: str) -> Group | None:
        for scopes in self._scopes:
            number = scopes.best(target)
            if number >= 0:
                return self._groups[number]
        return self._groups[self._rest[0]] if self._rest else None

    def speaking(self) -> Iterator[tuple[Group, tuple[UrlPattern, ...]]]:
        """Yield each group that applies to any target, and the scopes by which it applies.

        The scopes are () if the group has none: it applies to the targets that no scope covers.
        """
        for group in self._groups:
            scopes = tuple(
                scope for scope in group.scopes if self._group(sample(scope.path)) is group
            )
            if scopes or (not group.scopes and self._group(sample("/")) is group):
                yield group, scopes

    def matching(self, target: str) -> list[Group]:
        """Return all groups that match, the one that applies first."""
        target = normal_target(target)
        numbers = [number for scopes in self._scopes for number in scopes.all(target)] + self._rest
        return [self._groups[number] for number in dict.fromkeys(numbers)]


def exactness_of(patterns: Iterable[str] | None, host: str) -> bool | None:
    """Return True if a pattern without a wildcard matches the host, and None if no pattern matches.

    False means that only patterns with wildcards match, or that `patterns` is None.
    """
    if patterns is None:
        return False
    matching = [pattern for pattern in patterns if host_matches(pattern, host)]
    return any("*" not in pattern for pattern in matching) if matching else None


class GroupRefusal(NamedTuple):
    """A rule by which a group or an annotation refuses a request.

    Attributes:
        directive: The directive that refuses. None means that the group refuses because it has no
            such directive.
        from_annotation: True if the directive is in an annotation of the page.
    """

    rule: str
    directive: DirectiveValue[Any] | None
    from_annotation: bool = False


def refusals(
    group: Group | None,
    facts: Facts,
    purposes: tuple[str, ...],
    now: datetime,
    annotation: Directives | None = None,
    *,
    host: str = "",
) -> list[GroupRefusal]:
    """Return the refusals of a request. An empty list means that the request is permitted.

    Each rule occurs once, with the first directive that refuses by it.

    `group` is None if no group matches. `purposes` are the purposes of the agent, for requests
    that state none (`facts.purposes` is None). `annotation` is the annotation of the page. Its
    purposes and mechanisms replace those of the group. It has no effect on methods and limits.
    Its other directives apply in addition to those of the group. `host` is the host of the site. It
    tells pages of the site from pages of other hosts. If it is "", every page counts as a page of
    the site.
    """
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
    by_rule: dict[str, GroupRefusal] = {}
    for part in parts:
        for refusal in part:
            by_rule.setdefault(refusal.rule, refusal)
    return list(by_rule.values())


class _Policy:
    """The refusals by a group and an annotation, directive by directive."""

    def __init__(self, group: Group | None, annotation: Directives) -> None:
        self._is_silent = group is None  # if True, a missing directive refuses nothing
        self._of_group = group.directives if group else Directives()
        self._added = annotation

    def _refusals_by(
        self, rule: str, name: str, is_refusing: Callable[[Any], bool], *, replaces: bool = False
    ) -> Iterator[GroupRefusal]:
        """Yield the refusals by the directive `name`, a field of `Directives`.

        If `replaces` is True, values in the annotation replace those of the group. Otherwise both
        apply.
        """
        added = getattr(self._added, name)
        if not (replaces and added):
            yield from (
                GroupRefusal(rule, directive)
                for directive in getattr(self._of_group, name)
                if is_refusing(directive.value)
            )
        yield from (
            GroupRefusal(rule, directive, from_annotation=True)
            for directive in added
            if is_refusing(directive.value)
        )

    def _absent(self, rule: str, *directives: object) -> Iterator[GroupRefusal]:
        if not (self._is_silent or any(directives)):
            yield GroupRefusal(rule, None)

    def method(self, method: str) -> Iterator[GroupRefusal]:
        """Yield refusals of the method. A group without `allowed-methods` refuses all methods.

        See core, http-method-restrictions.
        """
        yield from (
            GroupRefusal("automation.method", directive)
            for directive in self._of_group.allowed_methods
            if method not in directive.value
        )
        yield from self._absent("automation.method", self._of_group.allowed_methods)

    def purposes(self, purposes: set[str]) -> Iterator[GroupRefusal]:
        """Yield refusals of the purposes.

        Every purpose must be listed, and a request without purposes is refused. A group without
        `allowed-purposes` refuses nothing. See core, purpose-declaration.
        """
        return self._refusals_by(
            "automation.purpose",
            "allowed_purposes",
            lambda allowed: not purposes or not purposes <= allowed,
            replaces=True,
        )

    def automations(self, automations: set[str]) -> Iterator[GroupRefusal]:
        """Yield refusals of the mechanisms (extension section-3.2).

        Every mechanism must be listed. Without `allowed-automations` all are refused.
        """
        rule = "automation.mechanism"
        yield from self._refusals_by(
            rule, "allowed_automations", lambda allowed: not automations <= allowed, replaces=True
        )
        yield from self._absent(
            rule, self._of_group.allowed_automations, self._added.allowed_automations
        )

    def api(self, *, has_key: bool) -> Iterator[GroupRefusal]:
        """Yield refusals of an API request (extension section-3.3). The default is "none"."""
        yield from self._refusals_by(
            "automation.api", "api_automation", lambda value: value == "none"
        )
        yield from self._absent("automation.api", self._of_group.api_automation)
        yield from self._refusals_by(
            "automation.key",
            "api_automation",
            lambda value: value == "with-key-only" and not has_key,
        )

    def xhr(self, method: str, referer: str | None, host: str) -> Iterator[GroupRefusal]:
        """Yield refusals of a request by a script (extension section-3.3).

        The default of `allow-xhr` is "none".
        """
        permitting = ("open", "read-only") if method == "GET" else ("open",)
        yield from self._refusals_by(
            "automation.xhr", "allow_xhr", lambda value: value not in permitting
        )
        yield from self._absent("automation.xhr", self._of_group.allow_xhr)
        yield from self._refusals_by(
            "automation.fetch-from",
            "disallow_fetch_from",
            lambda pages: _is_among(referer, pages, host),
        )

    def session(self, session: Session | None, now: datetime) -> Iterator[GroupRefusal]:
        """Yield refusals of the session (extension section-3.4).

        `session-validation` and `session-ttl` restrict the session of a request. A request without
        a session meets them.
        """
        is_human = session is not None and session.human_initiated
        yield from self._refusals_by(
            "automation.session",
            "require_human_initiated_session",
            lambda value: value and not is_human,
        )
        if session:
            age = now - session.started_at if session.started_at else None
            yield from self._refusals_by(
                "automation.session-validation",
                "session_validation",
                lambda value: (
                    value != "none" and SESSION_VALIDATION.get(value) not in session.carries
                ),
            )
            # If the clock was set back, a session begins in the future and its age is unknown.
            yield from self._refusals_by(
                "automation.session-ttl",
                "session_ttl",
                lambda ttl: ttl is None or age is None or not timedelta(0) <= age <= ttl,
            )

    def limits(self) -> Iterator[GroupRefusal]:
        """Yield refusals by limits of zero requests, such as `0/hour` (extension section-3.1)."""
        directives = self._of_group
        yield from (
            GroupRefusal("automation.none", directive)
            for directive in directives.request_limit
            if directive.value and not directive.value.requests
        )
        yield from (
            GroupRefusal("automation.none", directive)
            for directive in directives.concurrent_limit
            if not directive.value
        )


def _is_among(page: str | None, patterns: tuple[UrlPattern, ...], host: str) -> bool:
    """Return True if a page matches one of the patterns, or if the page is unknown.

    `page` is a URL. None or an invalid URL means that the page is unknown. Patterns without a host
    mean pages on `host`, or on any host if `host` is "". Without patterns the result is False.
    """
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
    """Return the limits on requests that a group applies to, or None if it has no limits.

    `origin` is the origin of the site. `stated` are the group's lines with limits.
    """
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
