"""The rules of automation-preferences.txt."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Rule

RULES = {
    "automation.allow": Rule(
        ALLOWS,
        "draft-liao-aipref-autoctl-core-01 http-method-restrictions",
        "the group that applies permits the request",
    ),
    "automation.method": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-core-01 http-method-restrictions",
        "the group that applies does not list the method, or lists none",
        depends_on_request=True,
    ),
    "automation.purpose": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-core-01 purpose-declaration",
        "a purpose of the request is not listed, or none is declared",
        is_of_purpose=True,
    ),
    "automation.mechanism": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-3.2",
        "the request is made with a tool that is not listed",
        depends_on_request=True,
    ),
    "automation.api": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-3.3",
        "API automation is not permitted",
        depends_on_request=True,
    ),
    "automation.key": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-3.3",
        "API automation is permitted with a key only, and the request has none",
        status=401,
        depends_on_request=True,
    ),
    "automation.xhr": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-3.3",
        "requests of scripts are not permitted, or GET only",
        depends_on_request=True,
    ),
    "automation.fetch-from": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-3.3",
        "requests of scripts are not permitted from that page",
        depends_on_request=True,
    ),
    "automation.session": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-3.4",
        "only requests of a session that a person began are permitted",
        status=401,
        depends_on_request=True,
    ),
    "automation.session-validation": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-3.4",
        "the session does not carry the required credential",
        status=401,
        depends_on_request=True,
    ),
    "automation.session-ttl": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-3.4",
        "the session is too old, or its age is unknown",
        status=401,
        depends_on_request=True,
    ),
    "automation.none": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-3.1",
        "the permitted number of requests is zero",
    ),
    "automation.unreachable": Rule(
        REFUSES,
        "comity, docs/automation.md",
        "automation-preferences.txt cannot be fetched: only plain GET and HEAD are left "
        "to robots.txt",
        is_unreachable=True,
    ),
    "automation.unread": Rule(
        REFUSES,
        "comity, docs/automation.md",
        "automation-preferences.txt exceeds a limit, or is not served as text: its "
        "refusals apply, and only plain GET and HEAD are permitted",
    ),
    "automation.json-ld": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-7",
        "JSON-LD that names the type of annotations is broken, or exceeds a limit: every "
        "use of the page is refused",
        severity=ERROR,
    ),
    "automation.agent": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "the value of a user-agent line is empty, or more than product tokens",
    ),
    "automation.annotation": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-ext section-3.5",
        "a directive has no effect in an annotation of a page",
    ),
    "automation.colon": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 file-location-and-format",
        "a directive has no colon: its most restrictive value applies",
        severity=ERROR,
    ),
    "automation.continued": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "a block that names no scope, host or user-agent continues the group before it",
        severity=INFO,
    ),
    "automation.host": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "a host is invalid, or there is more than one",
    ),
    "automation.invisible": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "an invisible character is beside a name, a host or a pattern",
        severity=ERROR,
    ),
    "automation.limit": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 security-considerations",
        "the file exceeds a limit",
        severity=ERROR,
    ),
    "automation.markup": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 file-location-and-format",
        "a line of markup is neither a comment nor a directive",
        severity=INFO,
    ),
    "automation.media-type": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 file-location-and-format",
        "the file is served with another media type than text/plain",
    ),
    "automation.repeated": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "a directive is repeated in its group: all values apply",
    ),
    "automation.scope": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "a group has no scope, or a scope is no URL pattern",
    ),
    "automation.value": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "a value cannot be read: the most restrictive one of its directive applies",
        severity=ERROR,
    ),
    # Found for authors alone
    "automation.no-effect": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-ext section-3.3",
        "a directive has no effect: another one refuses all of its requests",
    ),
    "automation.no-methods": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 http-method-restrictions",
        "a group without allowed-methods refuses every request",
    ),
    "automation.other-host": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "a group is for another host than that of the file",
    ),
    "automation.pattern": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "a scope probably matches nothing",
    ),
    "automation.shadowed": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "a group never applies: a later one has the same selectors",
    ),
    "automation.slack-limit": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-ext section-3.1",
        "a limit has no effect: another one is stricter",
        severity=INFO,
    ),
    "automation.unknown": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "the name of a line is not a directive",
    ),
    "automation.word": Rule(
        FINDING, "draft-liao-aipref-autoctl-ext section-3.2", "a misspelled mechanism"
    ),
    "automation.zero": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-ext section-3.1",
        "a limit of zero refuses every request",
    ),
}
