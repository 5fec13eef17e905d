"""The rules of automation-preferences.txt."""

from comity.policies.answers.rule import (
    ALLOWS,
    ERROR,
    FINDING,
    INFO,
    REFUSES,
    Example,
    Rule,
)

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
        why="An agent compares this value with its own name. comity reads it up to the first "
        "character that cannot be in a name. Other agents may compare the whole value, and "
        "then the group does not apply to them.",
        fix="Write only the name of the agent, or `*` for all agents.",
        example=Example(
            bad="user-agent: ExampleBot/1.0\nscope: /\nallowed-methods: GET\n",
            good="user-agent: ExampleBot\nscope: /\nallowed-methods: GET\n",
        ),
    ),
    "automation.annotation": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-ext section-3.5",
        "a directive has no effect in an annotation of a page",
        why="An annotation is about the page that contains it. Agents read this directive only "
        "in automation-preferences.txt, because they need it before they fetch the page.",
        fix="Write the directive in automation-preferences.txt.",
        example=Example(
            bad={
                "page.html": "<!DOCTYPE html>\n"
                '<script type="application/ld+json">\n'
                "{\n"
                '  "@type": "AutomationPolicyAnnotation",\n'
                '  "requestLimit": "10/minute",\n'
                '  "apiAutomation": "none"\n'
                "}\n"
                "</script>\n"
            },
            good={
                "page.html": "<!DOCTYPE html>\n"
                '<script type="application/ld+json">\n'
                "{\n"
                '  "@type": "AutomationPolicyAnnotation",\n'
                '  "apiAutomation": "none"\n'
                "}\n"
                "</script>\n",
                "automation-preferences.txt": "user-agent: *\n"
                "scope: /\n"
                "allowed-methods: GET, HEAD\n"
                "request-limit: 10/minute\n",
            },
        ),
    ),
    "automation.colon": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 file-location-and-format",
        "a directive has no colon: its most restrictive value applies",
        severity=ERROR,
        why="Agents may skip a line without a colon. comity reads it with the most restrictive "
        "value, so more requests are refused than the line says.",
        fix="Write a colon after the name.",
        example=Example(
            bad="user-agent: *\nscope: /\nallowed-methods GET, HEAD\n",
            good="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\n",
        ),
    ),
    "automation.continued": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "a block that names no scope, host or user-agent continues the group before it",
        severity=INFO,
        why="A blank line ends a group. Lines without a scope, host or user-agent still belong "
        "to the group before it. Other readers may skip them.",
        fix="Delete the blank line, or begin the new group with its scope.",
        example=Example(
            bad="user-agent: *\nscope: /\n\nallowed-methods: GET, HEAD\n",
            good="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\n",
        ),
    ),
    "automation.host": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "a host is invalid, or there is more than one",
        why="comity reads the host in a URL, and all hosts of a list. Other readers may find no "
        "host, and then the group applies to no request.",
        fix="Write one host, without a scheme and path.",
        example=Example(
            bad="host: https://example.com/\nscope: /\nallowed-methods: GET, HEAD\n",
            good="host: example.com\nscope: /\nallowed-methods: GET, HEAD\n",
        ),
    ),
    "automation.invisible": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "an invisible character is beside a name, a host or a pattern",
        severity=ERROR,
        why="An editor does not show the character, and agents may not recognise the name behind "
        "it. comity then uses the most restrictive value of this directive.",
        fix="Delete the invisible character, or write the line again by hand.",
        example=Example(
            bad="user-agent: *\nscope: /\n\ufeffallowed-methods: GET, HEAD\n",
            good="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\n",
        ),
    ),
    "automation.limit": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 security-considerations",
        "the file exceeds a limit",
        severity=ERROR,
        why="Behind a limit comity reads nothing, or assumes the most restrictive value. It may "
        "refuse requests that the file permits.",
        fix="Shorten the file, the line or the list that the message names.",
        example=Example(
            bad="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\nrequest-limit: 10/minute\n",
            good="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\nrequest-limit: 10/minute\n",
            repeated="request-limit: 10/minute\n",
            times=17,
        ),
    ),
    "automation.markup": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 file-location-and-format",
        "a line of markup is neither a comment nor a directive",
        severity=INFO,
        why="Comments begin with `#` in this file. comity skips a line of markup, but it reads a "
        "directive on the next line, even inside a comment of several lines.",
        fix="Write `#` before comments.",
        example=Example(
            bad="<!-- Preferences of the shop -->\n"
            "user-agent: *\n"
            "scope: /\n"
            "allowed-methods: GET, HEAD\n",
            good="# Preferences of the shop\nuser-agent: *\nscope: /\nallowed-methods: GET, HEAD\n",
        ),
    ),
    "automation.media-type": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 file-location-and-format",
        "the file is served with another media type than text/plain",
        why="The draft requires the media type text/plain. An agent may ignore a file with "
        "another type, and then nothing is refused.",
        fix="Send `Content-Type: text/plain; charset=utf-8` with the file.",
        example=Example(
            bad="HTTP/1.1 200 OK\n"
            "Content-Type: application/octet-stream\n"
            "\n"
            "user-agent: *\n"
            "scope: /\n"
            "allowed-methods: GET, HEAD\n",
            good="HTTP/1.1 200 OK\n"
            "Content-Type: text/plain; charset=utf-8\n"
            "\n"
            "user-agent: *\n"
            "scope: /\n"
            "allowed-methods: GET, HEAD\n",
        ),
    ),
    "automation.repeated": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "a directive is repeated in its group: all values apply",
        why="All values of a repeated directive apply, so a request needs the permission of each "
        "of them. Other readers may read only one of the lines.",
        fix="Write the directive once, with the value that you mean.",
        example=Example(
            bad="user-agent: *\nscope: /\nallowed-methods: GET\nallowed-methods: GET, HEAD\n",
            good="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\n",
        ),
    ),
    "automation.scope": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "a group has no scope, or a scope is no URL pattern",
        why="A group applies to the URLs that match its scope. Without a scope, it applies only "
        "to URLs that no other group matches. A scope that is not a pattern of URLs matches "
        "other URLs than you mean, or none.",
        fix="Write a `scope:` line for each path, beginning with `/`.",
        example=Example(
            bad="user-agent: *\nallowed-methods: GET, HEAD\n",
            good="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\n",
        ),
    ),
    "automation.value": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "a value cannot be read: the most restrictive one of its directive applies",
        severity=ERROR,
        why="comity reads a value that it does not understand as the most restrictive one, so "
        "more is refused than the line says. Other readers may skip the line.",
        fix="Write one of the values that the directive has.",
        example=Example(
            bad="user-agent: *\n"
            "scope: /\n"
            "allowed-methods: GET, HEAD\n"
            "request-limit: ten per minute\n",
            good="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\nrequest-limit: 10/minute\n",
        ),
    ),
    # Found for authors alone
    "automation.no-effect": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-ext section-3.3",
        "a directive has no effect: another one refuses all of its requests",
        why="Another directive of the group already refuses every request that this line is about.",
        fix="Delete the line, or the directive that refuses too much.",
        example=Example(
            bad="user-agent: *\n"
            "scope: /\n"
            "allowed-methods: GET, HEAD\n"
            "allow-xhr: none\n"
            "disallow-fetch-from: /checkout/\n",
            good="user-agent: *\n"
            "scope: /\n"
            "allowed-methods: GET, HEAD\n"
            "allow-xhr: open\n"
            "disallow-fetch-from: /checkout/\n",
        ),
    ),
    "automation.no-methods": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 http-method-restrictions",
        "a group without allowed-methods refuses every request",
        why="A group permits only the methods that it lists. Without a list it refuses every "
        "request, even GET.",
        fix="Write `allowed-methods:` with the methods that you permit.",
        example=Example(
            bad="user-agent: *\nscope: /\nrequest-limit: 10/minute\n",
            good="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\nrequest-limit: 10/minute\n",
        ),
    ),
    "automation.other-host": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "a group is for another host than that of the file",
        why="A file speaks only for the host that serves it. The group has no effect there.",
        fix="Move the group to the file of its own host.",
        example=Example(
            bad="host: example.com\n"
            "scope: /\n"
            "allowed-methods: GET\n"
            "\n"
            "host: example.org\n"
            "scope: /\n"
            "allowed-methods: GET\n",
            good="host: example.com\nscope: /\nallowed-methods: GET\n",
        ),
    ),
    "automation.pattern": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "a scope probably matches nothing",
        why="The scope contains characters that no URL has there, or signs that have no meaning "
        "in a pattern. The group probably applies to no request.",
        fix="Write the path as it is in URLs, with `*` where any characters may be.",
        example=Example(
            bad="user-agent: *\nscope: /[a-z]+/\nallowed-methods: GET\n",
            good="user-agent: *\nscope: /*/\nallowed-methods: GET\n",
        ),
    ),
    "automation.shadowed": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
        "a group never applies: a later one has the same selectors",
        why="Of two groups with the same host, scope and agents, the later one applies. The "
        "earlier group never decides.",
        fix="Delete one of the groups, or give it another scope.",
        example=Example(
            bad="scope: /shop/\n"
            "allowed-methods: GET\n"
            "\n"
            "scope: /shop/\n"
            "allowed-methods: GET, POST\n",
            good="scope: /shop/\nallowed-methods: GET, POST\n",
        ),
    ),
    "automation.slack-limit": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-ext section-3.1",
        "a limit has no effect: another one is stricter",
        severity=INFO,
        why="An agent obeys all limits of a group. It never reaches this limit, because the "
        "other one is stricter.",
        fix="Delete the limit that is less strict.",
        example=Example(
            bad="user-agent: *\n"
            "scope: /\n"
            "allowed-methods: GET, HEAD\n"
            "request-limit: 60/minute\n"
            "request-limit: 10/minute\n",
            good="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\nrequest-limit: 10/minute\n",
        ),
    ),
    "automation.unknown": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-core-01 formal-syntax",
        "the name of a line is not a directive",
        why="Agents skip a line with a name that they do not know, so the line has no effect.",
        fix="Correct the name, or write `#` before the line.",
        example=Example(
            bad="user-agent: *\nscope: /\nallowed-method: GET, HEAD\nallowed-methods: GET\n",
            good="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\n",
        ),
    ),
    "automation.word": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-ext section-3.2",
        "a misspelled mechanism",
        why="No tool has this name, so the line does not permit the tool that you mean.",
        fix="Write the name that the message proposes.",
        example=Example(
            bad="user-agent: *\n"
            "scope: /\n"
            "allowed-methods: GET, HEAD\n"
            "allowed-automations: headles\n",
            good="user-agent: *\n"
            "scope: /\n"
            "allowed-methods: GET, HEAD\n"
            "allowed-automations: headless\n",
        ),
    ),
    "automation.zero": Rule(
        FINDING,
        "draft-liao-aipref-autoctl-ext section-3.1",
        "a limit of zero refuses every request",
        why="A limit of zero refuses every request of the group. A person who reads the file may "
        "take the zero for a missing limit.",
        fix="Delete the limit, or write `allowed-methods:` without a method to refuse every "
        "request.",
        example=Example(
            bad="user-agent: *\nscope: /\nallowed-methods: GET, HEAD\nrequest-limit: 0/minute\n",
            good="user-agent: *\nscope: /\nallowed-methods:\n",
        ),
    ),
}
