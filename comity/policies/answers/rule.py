"""Every rule id that a decision or a finding may name, with its specification and what it means.

The tests hold that every id is documented in docs/rules.md and proved by a test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    spec: str  # "RFC 9309 section-2.2.2"
    summary: str


RULES: dict[str, Rule] = {
    rule: Rule(spec=spec, summary=summary)
    for rule, spec, summary in (
        # Access
        ("robots.allow", "RFC 9309 section-2.2.2", "an Allow line is the most specific match"),
        ("robots.disallow", "RFC 9309 section-2.2.2", "a Disallow line is the most specific match"),
        ("robots.no-match", "RFC 9309 section-2.2.2", "no rule of the group matches the path"),
        ("robots.no-group", "RFC 9309 section-2.2.1", "no group names the agent and there is none for `*`"),
        ("robots.self", "RFC 9309 section-2.2.2", "/robots.txt itself is always allowed"),
        ("robots.unavailable", "RFC 9309 section-2.3.1.3", "there is no robots.txt: nothing is restricted"),
        ("robots.unreachable", "RFC 9309 section-2.3.1.4", "robots.txt cannot be had: everything is disallowed"),
        ("robots.visit-time", "Visit-time (extension)", "the site asks for visits at other hours"),
        ("acap.allow", "ACAP 1.0 section-2.4.1", "a permission decides"),
        ("acap.disallow", "ACAP 1.0 section-2.4.2", "a prohibition decides"),
        (
            "acap.unusable",
            "ACAP 1.0 section-2.4.1",
            "a permission decides that cannot be honoured as stated: it grants nothing; the reason cites the section",
        ),
        ("acap.ignore-conventional", "ACAP 1.0 section-2.9.1", "the file says that its conventional records are to be ignored"),
        ("acap.reference-unreachable", "ACAP 1.0 section-2.3.2", "a referenced file cannot be had: nobody knows what it refuses"),
        (
            "automation.allow",
            "draft-liao-aipref-autoctl-core-01 http-method-restrictions",
            "the group that speaks permits the request",
        ),
        (
            "automation.method",
            "draft-liao-aipref-autoctl-core-01 http-method-restrictions",
            "the group that speaks does not list the method, or lists none",
        ),
        (
            "automation.purpose",
            "draft-liao-aipref-autoctl-core-01 purpose-declaration",
            "a purpose of the request is not listed, or none is declared",
        ),
        (
            "automation.mechanism",
            "draft-liao-aipref-autoctl-ext section-3.2",
            "the request is made with a tool that is not listed",
        ),
        ("automation.api", "draft-liao-aipref-autoctl-ext section-3.3", "API automation is not permitted"),
        (
            "automation.key",
            "draft-liao-aipref-autoctl-ext section-3.3",
            "API automation is permitted with a key only, and the request has none",
        ),
        ("automation.xhr", "draft-liao-aipref-autoctl-ext section-3.3", "requests of scripts are not permitted, or GET only"),
        (
            "automation.fetch-from",
            "draft-liao-aipref-autoctl-ext section-3.3",
            "requests of scripts are not permitted from that page",
        ),
        (
            "automation.session",
            "draft-liao-aipref-autoctl-ext section-3.4",
            "only requests of a session that a person began are permitted",
        ),
        (
            "automation.session-validation",
            "draft-liao-aipref-autoctl-ext section-3.4",
            "the session does not carry what it is validated by",
        ),
        ("automation.session-ttl", "draft-liao-aipref-autoctl-ext section-3.4", "the session is too old, or nobody can know"),
        ("automation.none", "draft-liao-aipref-autoctl-ext section-3.1", "the number of requests that are permitted is zero"),
        (
            "automation.unreachable",
            "comity, docs/automation.md",
            "automation-preferences.txt cannot be had: only plain GET and HEAD are left to robots.txt",
        ),
        (
            "automation.unread",
            "comity, docs/automation.md",
            "automation-preferences.txt has more than is read: besides what is read, only plain GET and HEAD are permitted",
        ),
        # Uses
        ("acap.expired", "ACAP 1.0 section-2.5.3.1", "the time limit of the permission is over"),
        ("acap.no-arrangement", "ACAP 1.0 section-2.5.3.2", "the permission asks for what has not been arranged with the site"),
        ("acap.resource", "ACAP 1.0 section-2.5.3.2", "what is to be used or included is not there"),
        ("usage.allow", "draft-thomson-aipref-sup section-3.3", "a short usage preference string says `y`"),
        ("usage.disallow", "draft-thomson-aipref-sup section-3.3", "a short usage preference string says `n`"),
        ("content-usage.allow", "draft-ietf-aipref-attach-05 robots", "a Content-Usage rule or field says `y`"),
        ("content-usage.disallow", "draft-ietf-aipref-attach-05 robots", "a Content-Usage rule or field says `n`"),
        ("content-signal.allow", "draft-romm-aipref-contentsignals usage-category-labels", "a Content Signal says `yes`"),
        ("content-signal.disallow", "draft-romm-aipref-contentsignals usage-category-labels", "a Content Signal says `no`"),
        (
            "content-signal.fallback",
            "comity, docs/content-signals.md",
            "a Content Signal for `*` says `no`, and the agent's own group has none",
        ),
        (
            "content-signal.whole-file",
            "comity, docs/content-signals.md",
            "a Content Signal in the group of another agent says `no`",
        ),
        ("robots-meta.disallow", "robots meta (docs/robots-meta.md)", "a robots meta element or an X-Robots-Tag field refuses"),
        (
            "robots-meta.limit",
            "robots meta (docs/robots-meta.md)",
            "a robots meta element or an X-Robots-Tag field limits what is permitted elsewhere",
        ),
        (
            "robots-meta.unread",
            "robots meta (docs/robots-meta.md)",
            "there is more than is read of robots meta elements or X-Robots-Tag fields: all is refused that they could refuse",
        ),
        ("tdmrep.reserved", "W3C TDMRep section-4", "the rights of text and data mining are reserved"),
        ("tdmrep.not-reserved", "W3C TDMRep section-4", "the rights of text and data mining are not reserved"),
        ("rsl.permits", "RSL 1.0", "a license permits it"),
        ("rsl.prohibits", "RSL 1.0", "a license prohibits it"),
        ("rsl.unlicensed", "RSL 1.0", "no license that can be used permits it"),
        ("ait.disallow", "ai.txt paper section-3.2", "a Disallow line prohibits the action on the element"),
        ("ait.guide", "ai.txt paper section-3.2", "a Guide line permits the action on the element, with instructions"),
        (
            "ait.selector",
            "ai.txt paper section-3.2",
            "a selector or name cannot be applied, or costs too much: the whole document is meant; or a part of it is left out",
        ),
        ("spawning.disallow", "Spawning's ai.txt (docs/ai-txt.md)", "a pattern refuses AI training"),
        ("comity.arrangement", "comity, docs/uses.md", "the operator has arranged it with the site"),
        # Requests
        ("acap.request", "ACAP 1.0 section-2.6", "the site asks for an action"),
        # Findings
        ("comity.more-findings", "comity, docs/rules.md", "the file has more findings than are listed"),
        ("robots.agent", "RFC 9309 section-2.2.1", "the value of a User-agent line is more than a product token, or none"),
        ("robots.joined", "RFC 9309 section-2.2.1", "a list of User-agent lines goes on after a record of another kind"),
        (
            "robots.long-line",
            "RFC 9309 section-2.5",
            "an over-long line: a Disallow is read up to the limit, an Allow not at all",
        ),
        ("robots.misspelled", "RFC 9309 section-2.2", "a misspelled name is read as the record that is meant"),
        ("robots.missing-colon", "RFC 9309 section-2.2", "a record without its colon is accepted"),
        ("robots.no-agent", "RFC 9309 section-2.2.1", "a rule before any User-agent line binds nobody"),
        ("robots.oversized", "RFC 9309 section-2.5", "lines past the limit of octets are not read"),
        ("robots.path", "RFC 9309 section-2.2.2", "a pattern that begins with neither `/` nor `*` matches nothing"),
        ("robots.rates", "RFC 9309 section-2.2.4", "there are more Crawl-delay, Request-rate and Visit-time lines than are read"),
        ("robots.sitemaps", "RFC 9309 section-2.2.4", "there are more Sitemap lines than are read"),
        ("acap.action", "ACAP 1.0 section-2.6", "an action request names no single path, or stands in a sub-record"),
        ("acap.conventional", "ACAP 1.0 section-2.9.2", "a conventional field within an ACAP record has no effect"),
        ("acap.crawlers", "ACAP 1.0 section-2.3.1", "`*` beside a crawler's name: the record is addressed to any"),
        ("acap.duplicate", "ACAP 1.0 section-3", "a name is defined twice: permissions by it grant nothing"),
        ("acap.empty", "ACAP 1.0 section-2.4.3", "a permission or prohibition names no resource: it states nothing"),
        ("acap.fused", "ACAP 1.0 section-2.3", "crawler lines with no field between them begin one record"),
        ("acap.ignored", "ACAP 1.0 section-2.9.1", "ACAP-ignore-conventional-records has no effect where it stands"),
        ("acap.late", "ACAP 1.0 section-2.7", "a definition stands after the first record: permissions by it grant nothing"),
        ("acap.limit", "ACAP 1.0 section-4", "there is more than is read: what is left out grants nothing"),
        ("acap.outside-record", "ACAP 1.0 section-2.3", "a field stands in no ACAP record: it has no effect"),
        (
            "acap.prohibition",
            "ACAP 1.0 section-2.4.2",
            "a prohibition has qualifiers or a usage of the file's own: it prohibits all the same",
        ),
        ("acap.qualifier", "ACAP 1.0 section-2.5", "a qualifier cannot be honoured: the permission grants nothing"),
        (
            "acap.reference",
            "ACAP 1.0 section-2.3.2",
            "a permissions reference where it has no effect, or not alone in its record",
        ),
        ("acap.syntax", "ACAP 1.0 section-3", "a field is not written as the grammar has it"),
        ("acap.undefined", "ACAP 1.0 section-2.4.1.3", "a usage of the file's own is not defined: the permission grants nothing"),
        ("acap.unknown-field", "ACAP 1.0 section-3", "ACAP 1.0 has no such field"),
        ("acap.unknown-set", "ACAP 1.0 section-2.4.4", "a resource set is not defined"),
        ("acap.unknown-usage", "ACAP 1.0 section-2.5", "ACAP 1.0 has no such usage: a permission of it grants nothing"),
        (
            "automation.agent",
            "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
            "the value of a user-agent line is more than product tokens, or none",
        ),
        (
            "automation.annotation",
            "draft-liao-aipref-autoctl-ext section-3.5",
            "a directive has no effect in an annotation of a page",
        ),
        (
            "automation.colon",
            "draft-liao-aipref-autoctl-core-01 file-location-and-format",
            "a directive without its colon: it has its most restrictive value",
        ),
        (
            "automation.continued",
            "draft-liao-aipref-autoctl-core-01 formal-syntax",
            "a block that names no scope, host or user-agent continues the group before it",
        ),
        ("automation.host", "draft-liao-aipref-autoctl-core-01 scope-and-applicability", "a host that is none, or more than one"),
        (
            "automation.json-ld",
            "draft-liao-aipref-autoctl-ext section-7",
            "JSON-LD that is broken, too long or too deep: it states nothing",
        ),
        ("automation.limit", "draft-liao-aipref-autoctl-core-01 security-considerations", "there is more than is read"),
        (
            "automation.markup",
            "draft-liao-aipref-autoctl-core-01 file-location-and-format",
            "a line of markup is no comment, and no directive either",
        ),
        (
            "automation.media-type",
            "draft-liao-aipref-autoctl-core-01 file-location-and-format",
            "the file is served with another media type than text/plain",
        ),
        (
            "automation.repeated",
            "draft-liao-aipref-autoctl-core-01 formal-syntax",
            "a directive stands more than once in its group: all hold together",
        ),
        (
            "automation.scope",
            "draft-liao-aipref-autoctl-core-01 scope-and-applicability",
            "a group without a scope, or a scope that is no URL pattern",
        ),
        (
            "automation.value",
            "draft-liao-aipref-autoctl-core-01 formal-syntax",
            "a value cannot be read: the most restrictive one of its directive applies",
        ),
        (
            "usage.late",
            "draft-thomson-aipref-sup section-6.1",
            "a usage line stands below the rules of its group: it counts all the same",
        ),
        ("usage.ignored", "draft-thomson-aipref-sup section-3.1", "a member is no preference: it is ignored"),
        (
            "usage.length",
            "draft-thomson-aipref-sup section-5.3",
            "an expression is longer than anybody has to read, or has too many labels",
        ),
        (
            "usage.outside",
            "draft-thomson-aipref-sup section-6.1",
            "a usage line stands in no group: it refuses, and permits nothing",
        ),
        ("content-usage.syntax", "draft-ietf-aipref-attach-05 robots", "a value is no dictionary: it states nothing"),
        ("content-usage.path", "draft-ietf-aipref-attach-05 robots", "what stands before the preferences is no path"),
        ("content-usage.label", "draft-ietf-aipref-vocab-07 section-4", "a word of another vocabulary"),
        ("content-usage.value", "draft-ietf-aipref-vocab-07 y-or-n", "a value is neither `y` nor `n`: it states nothing"),
        (
            "content-usage.length",
            "draft-ietf-aipref-attach-05 robots",
            "a line or a field is longer than is read: it permits nothing",
        ),
        (
            "content-usage.outside",
            "draft-ietf-aipref-attach-05 robots",
            "a rule stands in no group: it refuses, and permits nothing",
        ),
        (
            "content-signal.value",
            "draft-romm-aipref-contentsignals usage-category-labels",
            "a signal has a value that means nothing",
        ),
        (
            "content-signal.contradiction",
            "draft-romm-aipref-contentsignals usage-category-labels",
            "a signal permits the use of what may not be fetched",
        ),
        ("robots-meta.agent", "robots meta (docs/robots-meta.md)", "directives for another agent: they have no effect here"),
        ("robots-meta.unknown", "robots meta (docs/robots-meta.md)", "a directive that nobody knows"),
        ("robots-meta.value", "robots meta (docs/robots-meta.md)", "a directive whose value cannot be read"),
        ("tdmrep.syntax", "W3C TDMRep section-4", "tdmrep.json is not what it should be"),
        ("tdmrep.value", "W3C TDMRep section-4", "a value that means nothing: it counts as not set"),
        ("tdmrep.limit", "W3C TDMRep section-4", "there is more than is read"),
        ("rsl.syntax", "RSL 1.0", "the document cannot be read: nothing is licensed by it"),
        ("rsl.value", "RSL 1.0", "an element or value that is none of RSL's"),
        ("rsl.limit", "RSL 1.0", "there is more than is read"),
        ("ait.action", "ai.txt paper section-3.3", "an action that nobody knows, or a misspelled one"),
        ("ait.agent", "ai.txt paper section-3.2", "the value of a User-agent line is more than names, or none"),
        ("ait.comment", "ai.txt paper section-3.2", "a comment stands behind a value: it is left out"),
        ("ait.empty", "ai.txt paper figure-11", "a line without its value, or a block that holds nothing"),
        ("ait.file-type", "ai.txt paper section-3.2", "no file type, or not one that is known: every type is meant"),
        ("ait.format", "ai.txt paper figure-11", "the file is in another format"),
        ("ait.indentation", "ai.txt paper figure-11", "a line is not indented as its keyword asks: the keyword counts"),
        ("ait.keyword", "ai.txt paper figure-11", "a keyword that nobody knows, or a misspelled one"),
        ("ait.language", "ai.txt paper section-3.2", "a guideline without a language, or a language tag that is none"),
        ("ait.limit", "comity, docs/ai-txt.md", "there is more than is read: it may prohibit more, and permits nothing"),
        ("ait.orphan", "ai.txt paper figure-11", "a line has nothing above it to which it belongs"),
        ("ait.path", "ai.txt paper section-3.2", "a path that is none, or is written in another way"),
        ("spawning.pattern", "Spawning's ai.txt (docs/ai-txt.md)", "a value is not a single path or file type"),
        # Ours
        ("comity.default", "comity, docs/uses.md", "no source speaks of this use: the operator's default decides"),
        ("comity.no-page", "comity, docs/uses.md", "the item came from no page: no source can speak for it"),
        ("comity.scheme", "comity, docs/rules.md", "only http and https have policies that can be asked"),
        ("comity.no-site", "comity, docs/rules.md", "data:, file: and s3: name data of the operator's own: no site to ask"),
        (
            "comity.declaration",
            "comity, docs/automation.md",
            "what the spider declares of the request cannot be understood",
        ),
        (
            "comity.changed",
            "comity, docs/scheduler.md",
            "a downloader middleware has changed the URL of a request in its place, to another site's: nobody has judged it",
        ),
        (
            "comity.session",
            "comity, docs/automation.md",
            "the request goes out without the session that is declared for its host",
        ),
        ("comity.rate", "comity, docs/guard.md", "the client asks more often than the site's files permit"),
        ("comity.concurrent", "comity, docs/guard.md", "the client has more requests in flight than the site's files permit"),
        (
            "comity.uncounted",
            "comity, docs/guard.md",
            "the requests of the client cannot be counted: nobody knows how often it asked",
        ),
        ("comity.long-target", "comity, docs/guard.md", "the target is longer than the guard looks at"),
        (
            "comity.long-fields",
            "comity, docs/guard.md",
            "header fields that decide are longer, or have more values, than the guard looks at",
        ),
        (
            "comity.inner-address",
            "comity, docs/fetching.md",
            "a site leads to a server at an inner address, which the operator has not asked for",
        ),
        ("comity.max-delay", "comity, docs/settings.md", "the wait that the site asks for is longer than COMITY_MAX_DELAY"),
    )
}
