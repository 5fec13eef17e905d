"""Which requirement is proved by which tests. `make docs` writes it into docs/conformance.md from here."""

from __future__ import annotations

from tests.collected import ROOT, Collected, collect

PAGE = ROOT / "docs" / "conformance.md"

# The rows that comity is built to, in short. The tests name them by their ids: @pytest.mark.requirement("RFC-3").
ROWS = {
    "RFC-1": "one robots.txt for each scheme, host and port; UTF-8 with or without BOM; LF, CRLF and CR end a line",
    "RFC-2": "groups that name the product token are merged; else the groups for `*`; else no rules",
    "RFC-3": "the longest match wins, counted in octets after percent-normalising; on a tie Allow",
    "RFC-4": "`*`, `$` and `#` are special; /robots.txt itself is always allowed",
    "RFC-5": "five redirects are followed, across hosts; the rules bind the host that was asked first",
    "RFC-6": "status 400-499: no restriction; but 429 counts as RFC-7, and its Retry-After holds",
    "RFC-7": "5xx, network error, timeout, truncated body: nothing may be fetched, unless an older copy is at hand",
    "RFC-8": "a copy is used for 24 hours at most, by RFC 9111 and with conditional requests",
    "RFC-9": "512 KiB are read; what lies past that is ignored at a line boundary, with a finding",
    "RFC-10": "What a policy file is, is decided by its content, not by its Content-Type (RFC 9309 section 2.3.1.1:"
    " parseable rules MUST be followed; about one host in a hundred labels robots.txt `text/html`). (1) No markup at"
    " its beginning: it is read, whatever the label; a wrong label is a finding. (2) Markup (`<!doctype`, `<html`, a tag"
    " as its first character) and no line that, tags removed, begins with `User-agent` and a colon: no policy file,"
    " handled as 404 (soft 404). (3) Markup and such a line: tags are removed and only refusals are read. The other"
    " policy files by the same test: what is a page is no file, what is not a page is read by its body.",
    "RFC-11": "Sitemap lines belong to no group; Crawl-delay, Request-rate and Visit-time are honoured",
    "RFC-12": "open points of the RFC have one reading each, the one that lets less through (docs/robots.md)",
    "RFC-13": "control octets end no line; UTF-16 with a BOM is decoded; other octets stay distinct",
    "ACAP-1": "one field a line; a comment begins anywhere in a line, and blank lines end no record",
    "ACAP-2": "names of fields, usages, sets, crawlers, purposes and qualifiers are compared without regard to case",
    "ACAP-3": "a record: crawlers, then a reference or fields and sub-records, up to the next crawler after another field",
    "ACAP-4": "a sub-record: purposes, then permissions and prohibitions; action requests have no effect in it",
    "ACAP-5": "definitions stand before records; permissions by a late one or by none grant nothing",
    "ACAP-6": "the comment that states the version is recorded and changes nothing",
    "ACAP-7": "ACAP-ignore-conventional-records, where it may stand, leaves out the conventional records of its file",
    "ACAP-8": "neither kind of record is disturbed by fields of the other within it",
    "ACAP-9": "a User-agent line ends a record of ACAP, an ACAP-crawler line a conventional one",
    "ACAP-10": "a crawler is meant by its name or whole words of its User-Agent; `*` means any, beside names too",
    "ACAP-11": "records by name override those for `*`, for each purpose, usage and resource by itself",
    "ACAP-12": "a referenced file, one level deep, applies together with the one that refers to it",
    "ACAP-13": "a referenced file sees the definitions of the one that refers to it",
    "ACAP-14": "a referenced file that cannot be had refuses the site; none at an address that may not be reached is asked for",
    "ACAP-15": "fields of a sub-record are for crawls with a purpose that one of its patterns matches wholly",
    "ACAP-16": "general fields and those for the purpose are pooled; for the same pattern that of the purpose decides",
    "ACAP-20": "a prohibition with qualifiers or by a usage of the file's own is reported, and prohibits",
    "ACAP-21": "a permission of a usage of the file's own takes no further qualifiers",
    "ACAP-22": "resources are a pattern or a set; of an unknown set permissions grant nothing, prohibitions refuse everywhere",
    "ACAP-23": "`*` and a final `$` are special; other patterns are prefixes of path and query, without regard to case",
    "ACAP-24": "the narrowest pattern decides, found by comparing character by character",
    "ACAP-25": "where it cannot be told which is narrower, the usage is prohibited",
    "ACAP-26": "qualifiers play no part in which field decides",
    "ACAP-27": "a conventional line gives way to a field on crawling with its pattern; otherwise either refusal refuses",
    "ACAP-28": "`other` speaks for every usage of which no field that matches the resource speaks",
    "ACAP-29": "for a usage derived from `present` its own fields speak, else `present`, else `other`",
    "ACAP-30": "fourteen usages; fields of others are reported and grant nothing",
    "ACAP-31": "crawl, follow and other take no qualifiers",
    "ACAP-32": "time-limit: until the next fetch, to the end of a day, or for some days after the first taking",
    "ACAP-33": "must-use-resource, by arrangement: an element of the page, or a resource that may be crawled",
    "ACAP-34": "max-length of snippets, in characters or words",
    "ACAP-35": "prohibited-modification of what is shown whole",
    "ACAP-36": "must-include-resource, by arrangement: a credit or a link, from the page or elsewhere",
    "ACAP-37": "prohibited and required frames of what is shown whole",
    "ACAP-38": "a permission with a qualifier that cannot be honoured grants nothing, and keeps its place",
    "ACAP-39": "values of qualifiers are percent-decoded; space around `=` is tolerated",
    "ACAP-40": "a qualified usage is a name for a usage with qualifiers",
    "ACAP-41": "a composite usage stands for a permission of each usage that it lists, and lists no composite one",
    "ACAP-42": "permissions by a name that is defined twice grant nothing",
    "ACAP-43": "requests to take down or to crawl again are done by arrangement, else reported",
    "ACAP-44": "files beyond the limits are read up to them, with a finding",
    "ACAP-45": "`*` lifts no refusal by name; a permission by name lifts those for `*` of its usage and of more general ones",
    "ACAP-46": "a permission by name, for no purpose, leaves what `*` is told for a purpose in force",
    "ACAP-47": "the qualifiers of the permission that decides hold; of several that decide, those of all",
    "ACAP-48": "a permission without qualifiers has no restriction",
    "ACAP-49": "all records for the same crawler are read as one",
    "AUTO-1": "at the root of each origin, as plain text; other text that is not HTML is read, with a finding",
    "AUTO-2": "`#` begins a comment, also after a value; lines of markup are ignored, with a finding",
    "AUTO-3": "unknown directives change nothing, in silence",
    "AUTO-4": "a file with control octets other than CR, LF and HTAB is rejected",
    "AUTO-5": "groups end at blank lines, and lines without a scope, host or user-agent go on with the group before",
    "AUTO-6": "directives of the core, and the nine methods, in any case",
    "AUTO-7": "methods that are not listed are refused; where none is listed, all are",
    "AUTO-8": "scopes are prefixes with `*` and `$`, percent-normalised; an absolute URL is for its host",
    "AUTO-9": "hosts are exact or with `*`; U-labels and A-labels are equal",
    "AUTO-10": "user-agents are product tokens or `*`; absent, all",
    "AUTO-11": "the most specific group speaks, by host, scope, user-agent and place, and inherits nothing",
    "AUTO-12": "where no group matches, or there is no file, nothing is stated",
    "AUTO-13": "all purposes of a request have to be listed, where a list is given",
    "AUTO-14": "nothing in it widens what robots.txt or ACAP refuses",
    "AUTO-15": "the file is fetched before the first page; methods and scopes are honoured, the purpose is declared",
    "AUTO-16": "HTTP caching governs how long a copy is used",
    "AUTO-17": "the guard answers requests that the file refuses with 403",
    "AUTO-18": "parsing takes bounded time and memory, whatever the input",
    "AUTO-20": "where it cannot be had, only plain GET and HEAD are left, or nothing by setting",
    "AUTX-1": "an empty list is none, an absent directive no statement",
    "AUTX-2": "request-limit: no window ever holds more, over all processes that share a store file",
    "AUTX-3": "concurrent-limit: no more are in flight, over all processes that share a store file",
    "AUTX-4": "every mechanism of a request has to be listed; absent, none is",
    "AUTX-5": "api-automation none, with-key-only or open; absent, none",
    "AUTX-6": "allow-xhr none, read-only or open; absent, none",
    "AUTX-7": "disallow-fetch-from: pages from which scripts may not ask; absent, none is excluded",
    "AUTX-8": "require-human-initiated-session: only what belongs to a session that a person began",
    "AUTX-9": "session-validation: what a session that is required or used has to carry",
    "AUTX-10": "session-ttl: in its ranges; an older session is not used",
    "AUTX-11": "an annotation in a page comes before the file for that page, and widens nothing else",
    "AUTX-12": "JSON-LD is read within limits, through arrays and `@graph`; broken JSON is a finding, and if it names "
    "`AutomationPolicyAnnotation`, it refuses the uses of its page",
    "AUTX-13": "the guard answers 429 to too many requests, 403 to a mechanism, 401 to a missing key or session",
    "AUTX-14": "a value that cannot be read has the most restrictive meaning of its directive",
    "AUTX-15": "absent limits and session directives limit nothing; every request names its User-Agent",
    "GUARD-1": "ASGI and WSGI middleware refuses by the site's own files, with problem bodies, and serves the files",
    "USE-1": "label=value, parted by commas; only `y` and `n` count, space around them is ignored",
    "USE-2": "of one label any `n` wins; order has no effect",
    "USE-3": "tdm, ai, genai and search with what each narrows; unknown labels change nothing, labels can be registered",
    "USE-4": "the nearest more general label speaks where a label says nothing; then the operator's default",
    "USE-5": "the table of a newly registered label, known and not",
    "USE-6": "expressions are read past 1000 characters",
    "USE-7": "expressions from several places count as one, in any order",
    "USE-8": "one reading serves several usages",
    "USE-9": "`usage` and `usage-pref` lines in groups of robots.txt; below the rules too, with a finding",
    "USE-10": "they cover what the group allows where it disallows nothing, else everything",
    "USE-11": "Content-Usage as a structured field: tokens without parameters",
    "USE-12": "the field Usage-Pref is read as a short string",
    "USE-13": "a field speaks of its response, of whatever status",
    "USE-14": "preferences refuse no request; arrangements come before them, and are named",
    "USE-15": "expressions are shown with confusing characters replaced",
    "USE-16": "Content-Usage has no effect on caching",
    "PREF-1": "labels of every revision of the AIPREF vocabulary count, by one table",
    "PREF-2": "content-usage lines with paths: the longest match speaks, equal paths together",
    "PREF-3": "a dictionary's reading beside that of the short strings: by both, the more restrictive outcome",
    "PREF-4": "any refusal refuses, else any permission permits",
    "PREF-5": "the robots.txt at fetch time governs the item; its hash goes with it",
    "PREF-6": "the cases of dictionaries: last value, parameters, other types, parse failures",
    "SIG-1": "Content-Signal lines and fields: search, ai-input, ai-train, use",
    "SIG-2": "whom a line is meant for: a refusal counts by any reading, a permission by all",
    "SIG-3": "a signal that permits what may not be fetched is reported",
    "CANEL-1": "DisallowAITraining and AllowAITraining rules, matched as Disallow and Allow, decide training",
    "META-1": "meta robots, meta of the agent's name and X-Robots-Tag with scopes add up",
    "META-2": "each directive is mapped to uses, with lengths and ends",
    "META-3": "noai and noml refuse uses for AI, noimageai those of images; a page binds what is embedded in it",
    "META-4": "the known traps of scopes and spellings",
    "META-5": "`property` counts as `name` where there is no name, and `http-equiv` as the field of its name; both only refuse",
    "TDM-1": "tdmrep.json, field and meta, in this order; the first matching rule of the file",
    "TDM-2": "a reservation refuses mining unless arranged, and its policy goes along",
    "TDM-3": 'A malformed file: diagnostic; a top-level object with `"tdm-reservation": 1` counts as reserved for the whole'
    " site. Comments and trailing commas are read (with a finding: strict readers refuse the file). Behind a real syntax"
    " error any `tdm-reservation` of 1 reserves everything that no earlier rule matches.",
    "TDM-4": "metadata in EPUB and PDF supersede what came before",
    "RSL-1": "licenses are found by robots.txt, Link, link elements and scripts; they widen no access",
    "RSL-2": "lenient in prohibitions, strict in permissions; without a valid license nothing is licensed",
    "RSL-3": "XML without DTDs, within limits; max-age counts",
    "AIT-1": "lines, levels and indentation of the element-level language",
    "AIT-2": "comments are whole lines; `#` belongs to selectors",
    "AIT-3": "agents by name, without regard to case, or any",
    "AIT-4": "paths with file types cover themselves and what lies beneath, whatever the query",
    "AIT-5": "elements by CSS selectors in html, by dotted names in json and xml, `*` for the whole",
    "AIT-6": "the fourteen actions, `*`, and others that are kept and reported",
    "AIT-7": "what Disallow names is prohibited on the element",
    "AIT-8": "Guide permits with instructions, by language",
    "AIT-9": "all blocks that match apply; Disallow beats Guide",
    "AIT-10": "an XML form that reads back to the same rules, and a decision for URL, element and action",
    "AIT-11": "instructions for a page and an action, in the reader's language where there is one",
    "AIT-12": "authoring: completion, checks with positions, XML",
    "AIT-13": "a selector that cannot be compiled covers the whole document",
    "AIT-14": "no prohibition is lost by wrong indentation, missing lines above it, or actions below an empty Disallow",
    "AIT-15": "Spawning's format under the same name is read as what it is",
    "AIT-16": "what each prohibited action means for items, exports and instructions",
    "SPAWN-1": "what is served as ai.txt is told apart before it is read",
    "SPAWN-2": "patterns and file types of Spawning's form refuse training",
    "MEET-1": "a request is made where every source permits it, and a refusal names the line that refuses",
    "MEET-2": "links of a page that may not be followed are dropped",
    "MEET-3": "of several permissions all restrictions hold, the shorter limits and the union of prohibitions; "
    "a use that is itself a prohibited modification is refused",
    "MEET-4": "one table relates the vocabularies; direct words come first within one, any refusal counts across",
    "MEET-5": "prohibitions on elements travel with the item as spans, and what is refused can be cut out",
    "MEET-6": "a URL is judged by every path that a server may take it for: any refusal refuses (docs/robots.md)",
    "MEET-8": "A policy file that could not be had because the server did not answer (5xx, time-out, connection, cut off) is"
    " no silence: what that format could have refused is not granted by the operator's defaults until it has been asked"
    " again. A 4xx is an answer: the file is not there. (RFC 9309 section 2.3.1.4 for robots.txt; here for every other"
    " file, for its uses.)",
    "RATE-1": "the slowest of Crawl-delay, Request-rate, Visit-time, 429 or 503 and the operator's floor applies, for each host",
    "RATE-2": "no window ever holds more than was allowed, measured at the server, over all processes that share a store file",
    "RATE-3": "waiting for one host holds up no other",
    "RATE-4": "requests of a host that is slower than COMITY_MAX_DELAY are reported and set aside, never dropped in silence",
    "SEC-1": "no input makes a parser raise, or take more than linear time and bounded memory",
    "SEC-2": "redirects of policy files lead from a public site to public addresses only, judged when connecting",
    "SEC-3": "slow, endless and compressed policy files meet a deadline and a limit of bytes",
    "SEC-4": "nothing from a site is shown with its control, bidi or escape characters",
    "SEC-5": "selectors from a site compile and run in bounded time",
    "SEC-7": "no link, redirect or sitemap of a public site leads inside, by where connections would lead and have led",
    "SIG-4": "two groups for `*`, one put before the other by somebody else, are merged",
    "SEC-6": "the policy store survives `kill -9`, and no policy is forgotten into permission",
    "IDE-1": "the formats in editors, by the Language Server Protocol, and in a page of the browser",
    "IDE-2": "autocompletion by context, with documentation",
    "IDE-3": "code hints: what a line means, for whom, by which section",
    "IDE-4": "every rule of a format's grammar and values is checked at its place, before anything is published",
    "IDE-5": "the XML form from the text form and back, from the editor",
    "IDE-6": "findings are machine-readable, and fixed where a fix is safe",
    "EXT-1": "the format of another package is fetched, obeyed, tagged, explained, guarded, exported and verified as ours are",
    "EXT-2": "a format that cannot be used ends the program with its name, and one that raises refuses",
    "REACH-1": "workers on several machines are one crawl: one queue, one pace of a host, one copy of each policy file",
    "REACH-2": "no page is lost by the death of a worker or of the server",
    "REACH-3": "no rate of a host is exceeded through kills, freezes, restarts and loss of the network",
    "REACH-4": "full memory is back-pressure, and nothing travels as code",
    "REACH-5": "passes over datasets run as idempotent tasks per part on Ray, Dask or Spark, with the same outcome as alone",
    "STATE-2": "items are as safe as pages: a page counts as done when its items are on the disk, whatever is killed",
    "REPORT-1": "one page says what a crawl asked, what was refused and why, its pace and its uses, as the servers saw it",
    "STATE-3": "work is shared: no worker idles while another is the bottleneck, also when it joins late",
    "STATE-4": "the crawl is one: its totals, report, limits, settings that must be equal, its end and its next run are the crawl's",
    "TAG-1": "records that comity did not make get the tag of a crawl, from what they say and from what their sites say",
    "TAG-2": "the tag names the copy and the date of the policy that decided; with several dates any refusal refuses",
    "TAG-3": "where policies cannot be had there is no permission, unless the operator says so; the manifest says it",
    "WEB-1": "every request that a browser makes for a page is judged, paced and counted as what it is, before it goes out",
    "WEB-2": "the tag speaks of the document that the spider got, at the URL where the browser ended",
    "WEB-3": "requests of httpx, aiohttp and scripts without Scrapy are judged, paced and counted as those of a crawl",
    "WHY-1": "a decision carries rule, section, URL, line, text, hash and fetch time; the losing rules on request",
    "WHY-2": "the same decision is printed, logged, counted and written into the item's tag",
    "AUDIT-4": "registries of opt-outs (lists of domains, URLs or works of any origin) refuse beside the signals, with source, date and hash",
    "IMG-1": "PLUS DataMining in XMP of JPEG, PNG, WebP, TIFF, GIF, AVIF, video and PDF, as element, attribute or bare key; OtherConstraints travel",
    "IMG-2": "C2PA manifests: cawg.training-mining and c2pa.training-mining; constrained is notAllowed; any manifest refuses and none permits",
}


def page(proofs: dict[str, set[str]]) -> str:
    lines = [
        "# Requirements, and the tests that prove them",
        "",
        "Written by `make docs` from the markers in the tests. RFC: RFC 9309 ([robots.md](robots.md)); ACAP: ACAP 1.0",
        "([acap.md](acap.md)); AUTO, AUTX: automation-preferences.txt and its extension ([automation.md](automation.md)); USE,",
        "PREF, SIG, META, TDM, RSL: the permitted uses of pages ([uses.md](uses.md)), with a reading of each open point;",
        "MEET: combinations of these; RATE: the pace of requests; SEC: hostile sites; GUARD: these rules at the server",
        "([guard.md](guard.md)); EXT: formats of other packages ([formats.md](formats.md)); REACH, STATE: several machines",
        "([dataset-clusters.md](dataset-clusters.md)); TAG: records of others ([existing-data.md](existing-data.md)); WEB: other",
        "clients ([clients.md](clients.md)); WHY: explanations; AUDIT: evidence ([opt-outs.md](opt-outs.md));",
        "IMG: images and media ([plus.md](plus.md), [c2pa.md](c2pa.md)).",
    ]
    for requirement, text in ROWS.items():
        lines += [
            "",
            f"**{requirement}**: {text}",
            "",
            *(f"- {test}" for test in sorted(proofs.get(requirement, ()))),
        ]
    return "\n".join(lines) + "\n"


def test_every_file_of_tests_is_found(collected: Collected) -> None:
    assert collected.files == {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")
    }


def test_every_requirement_is_proved_and_every_marker_names_one(collected: Collected) -> None:
    assert sorted(collected.proofs) == sorted(ROWS)


def test_the_page_has_every_requirement_with_its_tests(collected: Collected) -> None:
    written = page(collected.proofs)
    for requirement, text in ROWS.items():
        assert f"\n**{requirement}**: {text}\n\n- tests/" in written


if __name__ == "__main__":
    PAGE.write_text(page(collect().proofs), "utf-8")
