"""The rules of automation-preferences.txt."""

from comity.policies.answers.rule import ALLOWS, ERROR, FINDING, INFO, REFUSES, Rule

RULES = {
    "automation.allow": Rule(
        ALLOWS,
        "draft-liao-aipref-autoctl-core-01 http-method-restrictions",
        "the group that speaks permits the request",
    ),
    "automation.method": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-core-01 http-method-restrictions",
        "the group that speaks does not list the method, or lists none",
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
        "the session does not carry what it is validated by",
        status=401,
        depends_on_request=True,
    ),
    "automation.session-ttl": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-3.4",
        "the session is too old, or nobody can know",
        status=401,
        depends_on_request=True,
    ),
    "automation.none": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-3.1",
        "the number of requests that are permitted is zero",
    ),
    "automation.unreachable": Rule(
        REFUSES,
        "comity, docs/automation.md",
        "automation-preferences.txt cannot be had: only plain GET and HEAD are left to robots.txt",
        is_unreachable=True,
    ),
    "automation.unread": Rule(
        REFUSES,
        "comity, docs/automation.md",
        "automation-preferences.txt has more than is read, or is not served as text: "
        "besides what it"
        " refuses, only plain GET and HEAD are permitted",
    ),
    "automation.json-ld": Rule(
        REFUSES,
        "draft-liao-aipref-autoctl-ext section-7",
        "JSON-LD that names the type of annotations is broken, or more than is read: "
        "every use of the page is refused",
        severity=ERROR,
    ),
    "automation.agent": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "the value of a user-agent line is more than product tokens, or none",
    ),
    "automation.annotation": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-ext section-3.5",
        "a directive has no effect in an annotation of a page",
    ),
    "automation.colon": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 file-location-and-format",
        "a directive without its colon: it has its most restrictive value",
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
        "a host that is none, or more than one",
    ),
    "automation.invisible": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "a character that cannot be seen stands beside a name, a host or a pattern",
        severity=ERROR,
    ),
    "automation.limit": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 security-considerations",
        "there is more than is read",
        severity=ERROR,
    ),
    "automation.markup": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 file-location-and-format",
        "a line of markup is no comment, and no directive either",
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
        "a directive stands more than once in its group: all hold together",
    ),
    "automation.scope": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "a group without a scope, or a scope that is no URL pattern",
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
        "a directive changes nothing, as another one refuses all that it is about",
    ),
    "automation.no-methods": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 http-method-restrictions",
        "a group without allowed-methods refuses every request",
    ),
    "automation.other-host": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "a group for another host stands in the file of this one",
    ),
    "automation.pattern": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "a scope probably matches nothing",
    ),
    "automation.shadowed": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "a group never speaks, as a later one is for the same",
    ),
    "automation.slack-limit": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-ext section-3.1",
        "a limit that nobody reaches who keeps to another one",
        severity=INFO,
    ),
    "automation.unknown": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "a line has the name of no directive",
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
