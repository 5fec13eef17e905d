"""The rules of robots.txt."""

from comity.policies.answers.rule import (
    ALLOWS,
    ERROR,
    FINDING,
    INFO,
    LIMITS,
    REFUSES,
    SILENT,
    Example,
    Rule,
)

RULES = {
    "robots.allow": Rule(
        ALLOWS, "RFC 9309 section-2.2.2", "an Allow line is the most specific match"
    ),
    "robots.disallow": Rule(
        REFUSES, "RFC 9309 section-2.2.2", "a Disallow line is the most specific match"
    ),
    "robots.no-match": Rule(
        SILENT, "RFC 9309 section-2.2.2", "no rule of the group matches the path"
    ),
    "robots.no-group": Rule(
        SILENT, "RFC 9309 section-2.2.1", "no group names the agent, and there is none for `*`"
    ),
    "robots.self": Rule(ALLOWS, "RFC 9309 section-2.2.2", "/robots.txt itself is always allowed"),
    "robots.unavailable": Rule(
        SILENT, "RFC 9309 section-2.3.1.3", "there is no robots.txt: nothing is restricted"
    ),
    "robots.unreachable": Rule(
        REFUSES,
        "RFC 9309 section-2.3.1.4",
        "robots.txt cannot be fetched: everything is disallowed",
        is_unreachable=True,
    ),
    "robots.visit-time": Rule(
        LIMITS, "Visit-time (extension)", "the site asks for visits at other hours", status=429
    ),
    "robots.agent": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "the value of a User-agent line is empty, or more than a product token",
        why="A crawler compares this value with its own name. A name has only "
        "letters, digits, `-` and `_`. comity reads the value up to the first other character. "
        "Other crawlers may compare the whole value, and then the group does "
        "not apply to them. A known crawler whose name has other characters, such as "
        "`archive.org_bot`, is no finding.",
        fix="Write only the name of the crawler, or `*` for all crawlers.",
        example=Example(
            bad="User-agent: GPTBot/1.1\nDisallow: /\n",
            good="User-agent: GPTBot\nDisallow: /\n",
        ),
    ),
    "robots.joined": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "a list of User-agent lines continues after a record of another kind",
        why="Only Allow and Disallow lines end a list of User-agent lines. A Crawl-delay or "
        "another record between two User-agent lines does not, so both agents are in one "
        "group, and all rules below apply to both.",
        fix="Write an Allow or Disallow line for the first agents before the next User-agent line.",
        example=Example(
            bad="User-agent: GPTBot\nCrawl-delay: 10\n\nUser-agent: *\nAllow: /\n",
            good="User-agent: GPTBot\n"
            "Crawl-delay: 10\n"
            "Disallow: /private/\n"
            "\n"
            "User-agent: *\n"
            "Allow: /\n",
        ),
    ),
    "robots.long-line": Rule(
        FINDING,
        "RFC 9309 section-2.5",
        "a line is too long: a Disallow is read up to the limit, an Allow not at all",
        severity=ERROR,
        why="comity reads the first 32 KiB of a line. The beginning of a long Disallow matches "
        "more paths than the whole line. A long Allow permits nothing.",
        fix="Shorten the path, for example with `*`.",
        example=Example(
            bad="User-agent: *\nDisallow: /search?q=x\n",
            good="User-agent: *\nDisallow: /search?q=\n",
            repeated="x",
            times=33_000,
        ),
    ),
    "robots.markup": Rule(
        FINDING,
        "RFC 9309 section-2.3.1.1",
        "the records are in markup: only the refusals are read",
        severity=ERROR,
        why="Many crawlers find no record in an HTML page and fetch everything. comity reads the "
        "refusals in it, and ignores every permission.",
        fix="Publish the lines as plain text, without tags.",
        example=Example(
            bad="<!DOCTYPE html>\n<pre>\nUser-agent: *\nDisallow: /private/\n</pre>\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.media-type": Rule(
        FINDING,
        "RFC 9309 section-2.3",
        "the file is served with another media type than text/plain",
        why="RFC 9309 requires the media type text/plain. A crawler may ignore a file with "
        "another type, and then nothing is refused.",
        fix="Send `Content-Type: text/plain; charset=utf-8` with the file.",
        example=Example(
            bad="HTTP/1.1 200 OK\n"
            "Content-Type: application/octet-stream\n"
            "\n"
            "User-agent: *\n"
            "Disallow: /private/\n",
            good="HTTP/1.1 200 OK\n"
            "Content-Type: text/plain; charset=utf-8\n"
            "\n"
            "User-agent: *\n"
            "Disallow: /private/\n",
        ),
    ),
    "robots.misspelled": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "a misspelled name is read as the intended record",
        severity=ERROR,
        why="comity and some other crawlers know this misspelling. All others skip the line, so "
        "it has no effect on them.",
        fix="Correct the spelling of the name.",
        example=Example(
            bad="User-agent: *\nDissallow: /private/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.missing-colon": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "a record without its colon is accepted",
        severity=ERROR,
        why="comity and some other crawlers read the line as if it had a colon. All others skip "
        "the line, so it has no effect on them.",
        fix="Write a colon after the name.",
        example=Example(
            bad="User-agent: *\nDisallow /private/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.no-agent": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "a rule or limit before any User-agent line applies to no crawler",
        severity=ERROR,
        why="A rule or a Crawl-delay belongs to the User-agent lines above it. No crawler obeys "
        "it without such a line.",
        fix="Write a User-agent line above it.",
        example=Example(
            bad="Disallow: /private/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.oversized": Rule(
        FINDING,
        "RFC 9309 section-2.5",
        "lines past the limit of octets are not read",
        severity=ERROR,
        why="comity reads 512 KiB of a file, and other crawlers read 500 KiB or more. Crawlers "
        "do not see the rules behind the limit.",
        fix="Shorten the file, for example with shorter paths that match several of the longer "
        "ones.",
        example=Example(
            bad="User-agent: *\nDisallow: /private/page-1.html\n",
            good="User-agent: *\nDisallow: /private/\n",
            repeated="Disallow: /private/page-1.html\n",
            times=20_000,
        ),
    ),
    "robots.path": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a pattern that begins with neither `/` nor `*` matches nothing",
        severity=ERROR,
        why="Every path of a URL begins with `/`, so this pattern matches no URL. Crawlers fetch "
        "the pages that the line should refuse.",
        fix="Begin the pattern with `/`, or with `*` if any text may come before it.",
        example=Example(
            bad="User-agent: *\nDisallow: private/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.rates": Rule(
        FINDING,
        "RFC 9309 section-2.2.4",
        "there are more Crawl-delay, Request-rate and Visit-time lines than are read",
        why="comity reads 1,000 of these lines for each agent. The lines behind the limit slow "
        "no crawler down.",
        fix="Write one Crawl-delay or Request-rate line for each group.",
        example=Example(
            bad="User-agent: *\nCrawl-delay: 10\nDisallow: /private/\n",
            good="User-agent: *\nCrawl-delay: 10\nDisallow: /private/\n",
            repeated="Crawl-delay: 10\n",
            times=1001,
        ),
    ),
    "robots.sitemaps": Rule(
        FINDING,
        "RFC 9309 section-2.2.4",
        "there are more Sitemap lines than are read",
        why="comity reads the first 1,000 Sitemap lines. The pages in the other sitemaps may not "
        "be found.",
        fix="List the sitemaps in one sitemap index, and name only the index.",
        example=Example(
            bad="Sitemap: https://example.com/sitemap-1.xml\n",
            good="Sitemap: https://example.com/sitemap-index.xml\n",
            repeated="Sitemap: https://example.com/sitemap-1.xml\n",
            times=1001,
        ),
    ),
    "robots.backslash": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a backslash in a path: browsers write `/` for it in a URL",
        why="Browsers and crawlers write `/` for a backslash in the path of a URL, so a pattern "
        "with a backslash matches no URL.",
        fix="Write `/` for each backslash.",
        example=Example(
            bad="User-agent: *\nDisallow: /private\\Drafts\\\n",
            good="User-agent: *\nDisallow: /private/Drafts/\n",
        ),
    ),
    "robots.dot-segment": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a path with `/./` or `/../` matches nothing",
        why="Browsers and crawlers resolve `.` and `..` in the path of a URL before they ask for "
        "it, so no URL contains them.",
        fix="Write the path without `.` and `..`.",
        example=Example(
            bad="User-agent: *\nDisallow: /public/../private/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.empty-rule": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a rule without a path changes nothing here",
        severity=INFO,
        why="An empty Disallow refuses nothing, and an empty Allow permits nothing. It matters "
        "only as the single rule of a group, if the group for `*` refuses something.",
        fix="Delete the line. To refuse everything, write `Disallow: /`.",
        example=Example(
            bad="User-agent: *\nDisallow: /private/\nDisallow:\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.escape": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a `%` in a path begins no escape",
        why="A `%` in a URL begins an escape of two hexadecimal digits. Crawlers differ about a "
        "`%` without them.",
        fix="Write `%25` for the character itself.",
        example=Example(
            bad="User-agent: *\nDisallow: /50%-off/\n",
            good="User-agent: *\nDisallow: /50%25-off/\n",
        ),
    ),
    "robots.file-type": Rule(
        FINDING,
        "RFC 9309 section-2.2.3",
        "a file type without `*` before it",
        why="A pattern begins at the start of the path. Without a `*`, `/.pdf` does not match "
        "`/report.pdf`.",
        fix="Write `*` before the file type, and `$` after it.",
        example=Example(
            bad="User-agent: *\nDisallow: /.pdf$\n",
            good="User-agent: *\nDisallow: /*.pdf$\n",
        ),
    ),
    "robots.list-mark": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "a mark of a list is before a record: the line is not read",
        severity=ERROR,
        why="A record begins with its name. Crawlers skip a line that begins with the mark of a "
        "list, such as `-` or `1.`.",
        fix="Delete the mark.",
        example=Example(
            bad="User-agent: *\n- Disallow: /private/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.no-records": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "a file with text has no record: it refuses nothing",
        severity=ERROR,
        why="Crawlers read only lines such as `Disallow: /private/`. They skip prose, JSON and "
        "other text, so the file refuses nothing.",
        fix="Write User-agent and Disallow lines, and `#` before a remark.",
        example=Example(
            bad="Please do not crawl this site.\n",
            good="# Please do not crawl this site.\nUser-agent: *\nDisallow: /\n",
        ),
    ),
    "robots.slow": Rule(
        FINDING,
        "Crawl-delay (extension)",
        "a Crawl-delay of 1000 seconds or more",
        why="The unit of Crawl-delay is seconds. With so long a delay, a crawler fetches fewer "
        "than 90 pages a day. Milliseconds may be meant.",
        fix="If milliseconds are meant, write the delay in seconds.",
        example=Example(
            bad="User-agent: *\nCrawl-delay: 5000\nDisallow: /private/\n",
            good="User-agent: *\nCrawl-delay: 5\nDisallow: /private/\n",
        ),
    ),
    "robots.blank": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "a blank line in a list of User-agent lines, one of them for `*`, does not end the list",
        why="Blank lines have no meaning in robots.txt. The agents above the blank line are in "
        "one group with the agents below it, and get the same rules.",
        fix="Write the rules of the first agents below their own User-agent lines.",
        example=Example(
            bad="User-agent: GPTBot\n\nUser-agent: *\nDisallow: /private/\n",
            good="User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.colon": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "another character is in place of the colon: the line is not read",
        severity=ERROR,
        why="A record has a colon between its name and its value. Crawlers skip a line with "
        "another character there, so the line has no effect.",
        fix="Write `:` after the name.",
        example=Example(
            bad="User-agent: *\nDisallow= /private/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.covered": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a shorter path with the same verdict covers this rule",
        severity=INFO,
        why="The shorter path matches every URL that this path matches, and both lines say the "
        "same. Without this line every decision is the same.",
        fix="Delete the line with the longer path. If the shorter path refuses too much, "
        "delete the line with the shorter path instead.",
        example=Example(
            bad="User-agent: *\nDisallow: /private/\nDisallow: /private/drafts/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.delay": Rule(
        FINDING,
        "Crawl-delay (extension)",
        "a Crawl-delay has no effect: a stricter limit applies too",
        severity=INFO,
        why="The strictest of several limits applies, so crawlers never use this delay.",
        fix="Delete the line with the shorter delay.",
        example=Example(
            bad="User-agent: *\nCrawl-delay: 5\nCrawl-delay: 10\nDisallow: /private/\n",
            good="User-agent: *\nCrawl-delay: 10\nDisallow: /private/\n",
        ),
    ),
    "robots.dollar": Rule(
        FINDING,
        "RFC 9309 section-2.2.3",
        "a `$` that is not the last character of a pattern is an ordinary character",
        why="`$` means the end of a URL only as the last character of a pattern. Anywhere else, "
        "it matches only a `$` in the URL, so the pattern probably matches no URL.",
        fix="Move the `$` to the end of the pattern, or delete it.",
        example=Example(
            bad="User-agent: *\nDisallow: /*.pdf$*\n",
            good="User-agent: *\nDisallow: /*.pdf\n",
        ),
    ),
    "robots.duplicate": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a group has the same rule twice",
        severity=INFO,
        why="The second line changes no decision. It may be left over from an edit, and another "
        "path may be missing in its place.",
        fix="Delete one of the two lines, or correct its path.",
        example=Example(
            bad="User-agent: *\nDisallow: /private/\nDisallow: /private/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.fragment": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "a `#` right after a path begins a comment",
        why="`#` begins a comment, so the pattern ends before it and matches more URLs than the "
        "line seems to say. Browsers and crawlers never send the part of a URL behind `#`.",
        fix="Write a space before a comment. Write `%23` for a `#` in the path.",
        example=Example(
            bad="User-agent: *\nDisallow: /page#comments\n",
            good="User-agent: *\nDisallow: /page\n",
        ),
    ),
    "robots.invisible": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "an invisible character is in a path or name, or before the name of a record",
        severity=ERROR,
        why="The character counts as a part of the path or name, although an editor does not "
        "show it. The line probably matches no URL, or names no crawler.",
        fix="Delete the invisible character, or write the line again by hand.",
        example=Example(
            bad="User-agent: *\nDisallow: /private\u200b/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.misplaced": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "robots.txt has no record for this request: the line is not read",
        why="Crawlers read this request in another place, such as a page or a header field. In "
        "robots.txt they skip it, so it has no effect.",
        fix="Write the request in the place that the message names.",
        example=Example(
            bad="User-agent: *\nNoindex: /private/\n",
            good={
                "robots.txt": "User-agent: *\nDisallow:\n",
                "private/page.html": '<meta name="robots" content="noindex">\n',
            },
        ),
    ),
    "robots.no-rules": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "no rule follows the last User-agent lines",
        why="A group without rules permits everything to its agents. The rules for `*` do not "
        "apply to an agent that a group names.",
        fix="Write a rule below the User-agent line, or delete the line.",
        example=Example(
            bad="User-agent: *\nDisallow: /private/\n\nUser-agent: GPTBot\n",
            good="User-agent: *\nDisallow: /private/\n\nUser-agent: GPTBot\nDisallow: /\n",
        ),
    ),
    "robots.overruled": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a Disallow has no effect: an Allow for the same agents has the same path",
        why="If an Allow and a Disallow have the same path, the Allow wins. Crawlers fetch the "
        "pages that this line should refuse.",
        fix="Delete the line that you do not mean.",
        example=Example(
            bad="User-agent: *\nAllow: /private/\nDisallow: /private/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.quotes": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "quotes around a path or name count as a part of it",
        severity=ERROR,
        why="The quotes count as a part of the path or name. No URL begins with a quote, and no "
        "crawler has a quote in its name, so the line has no effect.",
        fix="Delete the quotes.",
        example=Example(
            bad='User-agent: *\nDisallow: "/private/"\n',
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.rate-value": Rule(
        FINDING,
        "RFC 9309 section-2.2.4",
        "the value of a Crawl-delay, Request-rate or Visit-time cannot be read: it has no effect",
        why="Crawlers ignore a value that they cannot read, so the line slows no crawler down.",
        fix="Write the value in the form that the message names.",
        example=Example(
            bad="User-agent: *\nCrawl-delay: 10 seconds\nDisallow: /private/\n",
            good="User-agent: *\nCrawl-delay: 10\nDisallow: /private/\n",
        ),
    ),
    "robots.regex": Rule(
        FINDING,
        "RFC 9309 section-2.2.3",
        "a sign of regular expressions has no meaning in a pattern",
        why="Patterns know only `*`, and `$` at the end. All other characters stand for "
        "themselves, so this pattern probably matches no URL.",
        fix="Write a line for each path, with `*` where any characters may be.",
        example=Example(
            bad="User-agent: *\nDisallow: /(private|drafts)/\n",
            good="User-agent: *\nDisallow: /private/\nDisallow: /drafts/\n",
        ),
    ),
    "robots.repeated": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "another group of the same agents has the same rule",
        severity=INFO,
        why="The rules of all groups of an agent apply together, so the second line changes no "
        "decision.",
        fix="Delete one of the two lines.",
        example=Example(
            bad="User-agent: GPTBot\n"
            "Disallow: /private/\n"
            "\n"
            "User-agent: GPTBot\n"
            "Disallow: /private/\n"
            "Disallow: /drafts/\n",
            good="User-agent: GPTBot\nDisallow: /private/\nDisallow: /drafts/\n",
        ),
    ),
    "robots.same-agent": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "two groups name the same agent: the rules of both apply",
        severity=INFO,
        why="RFC 9309 says that the rules of both groups apply. Some crawlers read only the "
        "first group or the last one.",
        fix="Write all rules of the agent in one group.",
        example=Example(
            bad="User-agent: GPTBot\n"
            "Disallow: /private/\n"
            "\n"
            "User-agent: GPTBot\n"
            "Disallow: /drafts/\n",
            good="User-agent: GPTBot\nDisallow: /private/\nDisallow: /drafts/\n",
        ),
    ),
    "robots.second-path": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a second path, or a comment after `//`, counts as a part of the path",
        severity=ERROR,
        why="A line has one path. The text behind the first path counts as a part of it, so the "
        "line matches neither of the paths.",
        fix="Write each path on a line of its own, and `#` before a comment.",
        example=Example(
            bad="User-agent: *\nDisallow: /private/ /drafts/\n",
            good="User-agent: *\nDisallow: /private/\nDisallow: /drafts/\n",
        ),
    ),
    "robots.several-agents": Rule(
        FINDING,
        "RFC 9309 section-2.2.1",
        "a User-agent line has several names: only the first counts",
        severity=ERROR,
        why="A User-agent line names one crawler. Crawlers read only the first name, so the "
        "rules do not apply to the others.",
        fix="Write a User-agent line for each name.",
        example=Example(
            bad="User-agent: GPTBot, CCBot\nDisallow: /\n",
            good="User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n",
        ),
    ),
    "robots.sitemap-refused": Rule(
        FINDING,
        "RFC 9309 section-2.2.4",
        "the file refuses a sitemap that it names",
        severity=INFO,
        why="A crawler that obeys the rules for `*` may not fetch the sitemap, so it does not find "
        "the pages in it.",
        fix="Write an Allow line for the path of the sitemap, or move the sitemap.",
        example=Example(
            bad="User-agent: *\nDisallow: /maps/\n\nSitemap: https://example.com/maps/news.xml\n",
            good="User-agent: *\n"
            "Disallow: /maps/\n"
            "Allow: /maps/news.xml\n"
            "\n"
            "Sitemap: https://example.com/maps/news.xml\n",
        ),
    ),
    "robots.sitemap-url": Rule(
        FINDING,
        "RFC 9309 section-2.2.4",
        "the value of a Sitemap line is not one absolute URL",
        why="The address of a sitemap must be a whole URL. Crawlers may ignore a path or a list, "
        "and then do not find the pages in the sitemap.",
        fix="Write one address on each line, with `https://` and the host.",
        example=Example(
            bad="Sitemap: /sitemap.xml\n",
            good="Sitemap: https://example.com/sitemap.xml\n",
        ),
    ),
    "robots.space": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a space and the text after it count as a part of the path",
        severity=INFO,
        why="By RFC 9309 the text behind the space counts as a part of the path. Some crawlers "
        "end the path at the space, and then the line matches more URLs.",
        fix="Write a space in a path as `%20`, and `#` before a comment.",
        example=Example(
            bad="User-agent: *\nDisallow: /private files/\n",
            good="User-agent: *\nDisallow: /private%20files/\n",
        ),
    ),
    "robots.star": Rule(
        FINDING,
        "RFC 9309 section-2.2.3",
        "a `*` at the end of a pattern changes nothing",
        severity=INFO,
        why="A pattern matches every URL that begins with it, so a `*` at the end changes no "
        "decision here.",
        fix="Delete the `*` at the end.",
        example=Example(
            bad="User-agent: *\nDisallow: /private/*\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.unknown": Rule(
        FINDING,
        "RFC 9309 section-2.2",
        "an unknown name is similar to that of a record: the line is not read",
        severity=ERROR,
        why="Crawlers skip a line with a name that they do not know. A misspelled Disallow "
        "refuses nothing, and a misspelled Allow permits nothing.",
        fix="Write the name that the message proposes.",
        example=Example(
            bad="User-agent: *\nDisallow: /private/\nAlow: /private/press/\n",
            good="User-agent: *\nDisallow: /private/\nAllow: /private/press/\n",
        ),
    ),
    "robots.unread": Rule(
        FINDING,
        "RFC 9309 section-2.2.4",
        "a record that no known crawler reads",
        severity=INFO,
        why="Crawlers skip the line, so it has no effect.",
        fix="Delete the line, or write `#` before it if people should read it.",
        example=Example(
            bad="Robot-version: 2.0\nUser-agent: *\nDisallow: /private/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
    "robots.url": Rule(
        FINDING,
        "RFC 9309 section-2.2.2",
        "a URL is in place of a path",
        severity=ERROR,
        why="A rule has a path, not a URL. No path begins with a scheme and host, so the line "
        "matches nothing.",
        fix="Write only the path, in the robots.txt of that host.",
        example=Example(
            bad="User-agent: *\nDisallow: https://example.com/private/\n",
            good="User-agent: *\nDisallow: /private/\n",
        ),
    ),
}
