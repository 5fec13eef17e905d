"""The rules of ACAP."""

from comity.policies.answers.rule import (
    ALLOWS,
    ASKS,
    ERROR,
    FINDING,
    INFO,
    REFUSES,
    SILENT,
    Example,
    Rule,
)

RULES = {
    "acap.allow": Rule(ALLOWS, "ACAP 1.0 section-2.4.1", "a permission decides"),
    "acap.disallow": Rule(REFUSES, "ACAP 1.0 section-2.4.2", "a prohibition decides"),
    "acap.unusable": Rule(
        REFUSES,
        "ACAP 1.0 section-2.4.1",
        "the deciding permission cannot be honoured as stated, so it grants nothing; the "
        "reason cites the section",
    ),
    "acap.ignore-conventional": Rule(
        SILENT,
        "ACAP 1.0 section-2.9.1",
        "the file asks to ignore its conventional records",
    ),
    "acap.reference-unreachable": Rule(
        REFUSES,
        "ACAP 1.0 section-2.3.2",
        "a referenced file cannot be fetched: its refusals are unknown",
        is_unreachable=True,
    ),
    "acap.expired": Rule(
        REFUSES, "ACAP 1.0 section-2.5.3.1", "the time limit of the permission is over"
    ),
    "acap.no-arrangement": Rule(
        REFUSES,
        "ACAP 1.0 section-2.5.3.2",
        "the permission requires something that is not arranged with the site",
    ),
    "acap.resource": Rule(
        REFUSES,
        "ACAP 1.0 section-2.5.3.2",
        "a resource that must be used or included does not exist",
        is_missing_resource=True,
    ),
    "acap.request": Rule(ASKS, "ACAP 1.0 section-2.6", "the site asks for an action"),
    "acap.action": Rule(
        FINDING,
        "ACAP 1.0 section-2.6",
        "an action request names no single path, or is in a sub-record",
        severity=ERROR,
        why="The request has no effect: crawlers keep the copy that you want them to remove, or "
        "do not fetch the page again.",
        fix="Write the path of one resource, without `*`, above all ACAP-usage-purpose lines of "
        "the record.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-request-take-down: /drafts/*.html\n",
            good="ACAP-crawler: *\nACAP-request-take-down: /drafts/plan.html\n",
        ),
    ),
    "acap.conventional": Rule(
        FINDING,
        "ACAP 1.0 section-2.9.2",
        "a conventional field within an ACAP record has no effect",
        severity=ERROR,
        why="For a crawler that reads ACAP, an ACAP-crawler line ends the User-agent record "
        "above it. A Disallow below it belongs to no User-agent record, so it closes "
        "nothing.",
        fix="Move the line below a User-agent line.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-allow-index: /\nDisallow: /private/\n",
            good="User-agent: *\nDisallow: /private/\n\nACAP-crawler: *\nACAP-allow-index: /\n",
        ),
    ),
    "acap.crawlers": Rule(
        FINDING,
        "ACAP 1.0 section-2.3.1",
        "`*` is beside a crawler's name: the record is for any crawler",
        why="`*` means every crawler. If it shares a record with names, the names make no "
        "difference: permissions for one crawler become permissions for all.",
        fix="Write `*` and named crawlers in separate records.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-crawler: Googlebot\nACAP-allow-index: /\n",
            good="ACAP-crawler: Googlebot\n"
            "ACAP-allow-index: /\n"
            "\n"
            "ACAP-crawler: *\n"
            "ACAP-disallow-index: /\n",
        ),
    ),
    "acap.duplicate": Rule(
        FINDING,
        "ACAP 1.0 section-3",
        "a name is defined twice: permissions by it grant nothing",
        severity=ERROR,
        why="Crawlers do not know which of the definitions you mean, so permissions that use the "
        "name grant nothing.",
        fix="Merge the definitions into one line, or rename one of them.",
        example=Example(
            bad="ACAP-resource-set: articles /news/\n"
            "ACAP-resource-set: articles /opinion/\n"
            "ACAP-crawler: *\n"
            "ACAP-allow-index: the-acap:resource-set:articles\n",
            good="ACAP-resource-set: articles /news/ /opinion/\n"
            "ACAP-crawler: *\n"
            "ACAP-allow-index: the-acap:resource-set:articles\n",
        ),
    ),
    "acap.empty": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.3",
        "a permission or prohibition names no resource: it states nothing",
        why="A field without a path neither permits nor prohibits anything. An empty "
        "ACAP-disallow-crawl leaves the site open.",
        fix="Write a path after the colon, such as `/` for the whole site.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-disallow-crawl:\n",
            good="ACAP-crawler: *\nACAP-disallow-crawl: /\n",
        ),
    ),
    "acap.fused": Rule(
        FINDING,
        "ACAP 1.0 section-2.3",
        "crawler lines with no field between them begin one record",
        why="A blank line or a comment does not end a record. Without a field between two "
        "ACAP-crawler lines, the fields below them apply to both crawlers.",
        fix="Write a field for the first crawler, or delete the lines between the two if you "
        "mean both.",
        example=Example(
            bad="ACAP-crawler: Googlebot\n\nACAP-crawler: Bingbot\nACAP-disallow-crawl: /\n",
            good="ACAP-crawler: Googlebot\n"
            "ACAP-allow-crawl: /\n"
            "\n"
            "ACAP-crawler: Bingbot\n"
            "ACAP-disallow-crawl: /\n",
        ),
    ),
    "acap.ignored": Rule(
        FINDING,
        "ACAP 1.0 section-2.9.1",
        "ACAP-ignore-conventional-records has no effect in this place",
        severity=ERROR,
        why="The line has no effect, so the User-agent records of the file still apply to "
        "crawlers that read ACAP.",
        fix="Write the line, without a value, above all other ACAP fields.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-allow-crawl: /\nACAP-ignore-conventional-records\n",
            good="ACAP-ignore-conventional-records\nACAP-crawler: *\nACAP-allow-crawl: /\n",
        ),
    ),
    "acap.late": Rule(
        FINDING,
        "ACAP 1.0 section-2.7",
        "a definition is after the first record: permissions by it grant nothing",
        severity=ERROR,
        why="ACAP requires all definitions above the first record. Permissions that use a later "
        "definition grant nothing.",
        fix="Move the definition above the first ACAP-crawler line.",
        example=Example(
            bad="ACAP-crawler: *\n"
            "ACAP-allow-index: the-acap:resource-set:articles\n"
            "ACAP-resource-set: articles /news/ /opinion/\n",
            good="ACAP-resource-set: articles /news/ /opinion/\n"
            "ACAP-crawler: *\n"
            "ACAP-allow-index: the-acap:resource-set:articles\n",
        ),
    ),
    "acap.limit": Rule(
        FINDING,
        "ACAP 1.0 section-4",
        "the file exceeds a limit: the omitted part grants nothing",
        severity=ERROR,
        why="comity reads lines and files up to a limit. Beyond it a permission grants nothing, "
        "and a prohibition may apply to more than you mean.",
        fix="Shorten the line or the file, for example with `*` in a path.",
        example=Example(
            bad="ACAP-resource-set: articles /news/1 /news/2\n"
            "ACAP-crawler: *\n"
            "ACAP-allow-index: the-acap:resource-set:articles\n",
            good="ACAP-resource-set: articles /news/\n"
            "ACAP-crawler: *\n"
            "ACAP-allow-index: the-acap:resource-set:articles\n",
            repeated=" /news/2",
            times=5000,
        ),
    ),
    "acap.outside-record": Rule(
        FINDING,
        "ACAP 1.0 section-2.3",
        "a field is outside of all ACAP records: it has no effect",
        severity=ERROR,
        why="A field applies to the crawlers of its record. Without an ACAP-crawler line above "
        "it, it applies to no crawler, so a prohibition prohibits nothing.",
        fix="Write `ACAP-crawler: *`, or a line for the crawler that you mean, above the field.",
        example=Example(
            bad="ACAP-disallow-index: /private/\n",
            good="ACAP-crawler: *\nACAP-disallow-index: /private/\n",
        ),
    ),
    "acap.prohibition": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.2",
        "a prohibition has qualifiers, or a usage of the file's own: it prohibits anyway",
        severity=ERROR,
        why="ACAP has no prohibition with conditions. Crawlers prohibit the whole usage, even "
        "the part that you want to permit.",
        fix="Permit the usage with its qualifiers, or prohibit a usage of ACAP without any.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-disallow-present-snippet: / max-length=30-words\n",
            good="ACAP-crawler: *\nACAP-allow-present-snippet: / max-length=30-words\n",
        ),
    ),
    "acap.qualifier": Rule(
        FINDING,
        "ACAP 1.0 section-2.5",
        "a qualifier cannot be honoured: the permission grants nothing",
        severity=ERROR,
        why="A permission holds only with its qualifiers. A crawler cannot honour a qualifier "
        "that it does not understand, so the permission grants nothing.",
        fix="Write a qualifier that ACAP has for this usage, in the form `name=value`.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-allow-index: / time-limit=30\n",
            good="ACAP-crawler: *\nACAP-allow-index: / time-limit=30-days\n",
        ),
    ),
    "acap.reference": Rule(
        FINDING,
        "ACAP 1.0 section-2.3.2",
        "a permissions reference has no effect, or is not alone in its record",
        why="ACAP allows a reference only in robots.txt, as the only field of a record. "
        "Elsewhere a crawler may ignore the reference, or refuse every use as if it could "
        "not fetch the file.",
        fix="Move the other fields of the record into the file that the reference names.",
        example=Example(
            bad="ACAP-crawler: *\n"
            "ACAP-permissions-reference: /permissions.txt\n"
            "ACAP-disallow-index: /private/\n",
            good="ACAP-crawler: *\nACAP-permissions-reference: /permissions.txt\n",
        ),
    ),
    "acap.syntax": Rule(
        FINDING,
        "ACAP 1.0 section-3",
        "a field does not follow the grammar",
        severity=ERROR,
        why="Crawlers may ignore a field that breaks the grammar. comity reads a prohibition in "
        "it as widely as possible, and a permission in it grants nothing.",
        fix="Write the name of the field, a colon, and a value that ACAP allows there: a path, a "
        "set, or a crawler's name.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-disallow-index: https://example.com/private/\n",
            good="ACAP-crawler: *\nACAP-disallow-index: /private/\n",
        ),
    ),
    "acap.undefined": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.1.3",
        "a usage of the file's own is not defined: the permission grants nothing",
        severity=ERROR,
        why="A usage in parentheses is one that the file itself defines. Without a definition, "
        "the permission grants nothing.",
        fix="Define the usage above the first record, or correct its name.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-allow-(teaser): /\n",
            good="ACAP-qualified-usage: teaser present-snippet max-length=30-words\n"
            "ACAP-crawler: *\n"
            "ACAP-allow-(teaser): /\n",
        ),
    ),
    "acap.unknown-field": Rule(
        FINDING,
        "ACAP 1.0 section-3",
        "ACAP 1.0 has no such field",
        severity=ERROR,
        why="Crawlers ignore a field that ACAP does not define. A prohibition with a misspelled "
        "name prohibits nothing.",
        fix="Write a field of ACAP, such as `ACAP-disallow-index`.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-deny-index: /private/\n",
            good="ACAP-crawler: *\nACAP-disallow-index: /private/\n",
        ),
    ),
    "acap.unknown-set": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.4",
        "a resource set is not defined",
        severity=ERROR,
        why="Crawlers do not know which paths you mean. A permission for an undefined set grants "
        "nothing, and comity applies a prohibition to the whole site.",
        fix="Define the set above the first record, or correct its name.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-disallow-index: the-acap:resource-set:drafts\n",
            good="ACAP-resource-set: drafts /drafts/ /preview/\n"
            "ACAP-crawler: *\n"
            "ACAP-disallow-index: the-acap:resource-set:drafts\n",
        ),
    ),
    "acap.unknown-usage": Rule(
        FINDING,
        "ACAP 1.0 section-2.5",
        "ACAP 1.0 has no such usage: a permission of it grants nothing",
        severity=ERROR,
        why="The field neither permits nor prohibits anything, because ACAP has no usage with "
        "this name.",
        fix="Write a usage of ACAP: `crawl`, `follow`, `index`, `preserve`, `present`, one that "
        "begins with `present-`, or `other`.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-disallow-display: /private/\n",
            good="ACAP-crawler: *\nACAP-disallow-present: /private/\n",
        ),
    ),
    "acap.dollar": Rule(
        FINDING,
        "ACAP 1.0 section-2.8",
        "a `$` that is not the last character of a pattern is an ordinary character",
        why="`$` means the end of a path only as the last character. Elsewhere the pattern "
        "matches only paths that contain a dollar sign, so it probably matches nothing.",
        fix="Delete the `$`, or the text after it.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-disallow-index: /*.pdf$/\n",
            good="ACAP-crawler: *\nACAP-disallow-index: /*.pdf$\n",
        ),
    ),
    "acap.invisible": Rule(
        FINDING,
        "ACAP 1.0 section-3",
        "an invisible character is in a path or name",
        severity=ERROR,
        why="An invisible character is part of the path, so the path matches no page of your "
        "site. In a crawler's name it makes the name unreadable.",
        fix="Delete the character, or type the path or name again.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-disallow-index: /private\u200b/\n",
            good="ACAP-crawler: *\nACAP-disallow-index: /private/\n",
        ),
    ),
    "acap.no-resource": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.3",
        "a qualifier is in place of the resource, and counts as a path",
        severity=ERROR,
        why="The path comes first in a permission or prohibition. Without a path the qualifier "
        "is read as a path, so the field matches no page of your site.",
        fix="Write a path before the qualifier, such as `/` for the whole site.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-allow-index: time-limit=30-days\n",
            good="ACAP-crawler: *\nACAP-allow-index: / time-limit=30-days\n",
        ),
    ),
    "acap.overruled": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.5",
        "a prohibition of the same record overrides the permission",
        why="In one record, a prohibition overrides a permission of the same usage and path, in "
        "either order. The usage is prohibited.",
        fix="Delete the line that you do not mean.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-allow-index: /news/\nACAP-disallow-index: /news/\n",
            good="ACAP-crawler: *\nACAP-allow-index: /news/\n",
        ),
    ),
    "acap.quotes": Rule(
        FINDING,
        "ACAP 1.0 section-3",
        "quotes around a path count as a part of it, and a name with quotes cannot be read",
        severity=ERROR,
        why="Quotes count as part of the path, so it matches no page of your site. Around a "
        "crawler's name they make the name unreadable.",
        fix="Delete the quotes.",
        example=Example(
            bad='ACAP-crawler: *\nACAP-disallow-index: "/private/"\n',
            good="ACAP-crawler: *\nACAP-disallow-index: /private/\n",
        ),
    ),
    "acap.regex": Rule(
        FINDING,
        "ACAP 1.0 section-2.8",
        "a sign of regular expressions has no meaning in a pattern",
        why="ACAP patterns are not regular expressions. Only `*`, and `$` at the end, have a "
        "meaning. All other characters match themselves, so the pattern probably matches "
        "nothing.",
        fix="Write `*` for any characters, or a field for each path.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-disallow-index: /(drafts|preview)/\n",
            good="ACAP-crawler: *\nACAP-disallow-index: /drafts/\nACAP-disallow-index: /preview/\n",
        ),
    ),
    "acap.repeated": Rule(
        FINDING,
        "ACAP 1.0 section-2.4",
        "a field repeats another one of its record",
        severity=INFO,
        why="The line changes nothing. If you change only one of the two lines later, the other "
        "one still applies.",
        fix="Delete the line.",
        example=Example(
            bad="ACAP-crawler: *\n"
            "ACAP-allow-index: /news/\n"
            "ACAP-allow-follow: /\n"
            "ACAP-allow-index: /news/\n",
            good="ACAP-crawler: *\nACAP-allow-index: /news/\nACAP-allow-follow: /\n",
        ),
    ),
    "acap.second-path": Rule(
        FINDING,
        "ACAP 1.0 section-2.4.3",
        "a field has one resource: a second path has no effect",
        severity=ERROR,
        why="A field has one path. A prohibition leaves the second path open, and a permission "
        "with two paths grants nothing.",
        fix="Write a field for each path, or define an ACAP-resource-set.",
        example=Example(
            bad="ACAP-crawler: *\nACAP-disallow-index: /drafts/ /preview/\n",
            good="ACAP-crawler: *\nACAP-disallow-index: /drafts/\nACAP-disallow-index: /preview/\n",
        ),
    ),
    "acap.several-crawlers": Rule(
        FINDING,
        "ACAP 1.0 section-2.3.1",
        "several names in a crawler field count as one name, which means no crawler",
        severity=ERROR,
        why="ACAP reads the whole value as one name, and no crawler has this name. So the record "
        "applies to no crawler.",
        fix="Write an ACAP-crawler line for each name.",
        example=Example(
            bad="ACAP-crawler: Googlebot, Bingbot\nACAP-disallow-crawl: /\n",
            good="ACAP-crawler: Googlebot\nACAP-crawler: Bingbot\nACAP-disallow-crawl: /\n",
        ),
    ),
    "acap.frees-others": Rule(
        FINDING,
        "ACAP 1.0 section-2.9.1",
        "ACAP-ignore-conventional-records frees all crawlers that the ACAP records do not name",
        why="The line disables your User-agent records for every crawler that reads ACAP. "
        "Crawlers that no ACAP record names may then fetch everything.",
        fix="Write a record for `ACAP-crawler: *` with your prohibitions, or delete the line.",
        example=Example(
            bad="ACAP-ignore-conventional-records\n"
            "ACAP-crawler: Googlebot\n"
            "ACAP-allow-crawl: /\n"
            "\n"
            "User-agent: *\n"
            "Disallow: /private/\n",
            good="ACAP-ignore-conventional-records\n"
            "ACAP-crawler: Googlebot\n"
            "ACAP-allow-crawl: /\n"
            "\n"
            "ACAP-crawler: *\n"
            "ACAP-disallow-crawl: /private/\n"
            "\n"
            "User-agent: *\n"
            "Disallow: /private/\n",
        ),
    ),
    "acap.unused": Rule(
        FINDING,
        "ACAP 1.0 section-2.7",
        "no field uses a defined usage or set",
        why="A definition has no effect by itself. Perhaps the field that should use the name "
        "spells it differently.",
        fix="Use the name in a field, or delete the definition.",
        example=Example(
            bad="ACAP-resource-set: drafts /drafts/ /preview/\n"
            "ACAP-crawler: *\n"
            "ACAP-disallow-index: /drafts/\n",
            good="ACAP-resource-set: drafts /drafts/ /preview/\n"
            "ACAP-crawler: *\n"
            "ACAP-disallow-index: the-acap:resource-set:drafts\n",
        ),
    ),
}
