"""The settings, each declared once. `make docs` writes docs/settings.md from them."""

from __future__ import annotations

from typing import Any

from comity.dataset.tags.setting import TagSetting
from comity.gate.options.kinds import (
    FLAG,
    HEADER_FIELD,
    NAMES,
    NAMES_OR_URIS,
    NUMBER_OR_0,
    OPTIONAL_HEADER_FIELD,
    PORT,
    SECONDS,
    SECONDS_ABOVE_0,
    SECONDS_OR_ALL,
    TOKEN,
    Agrees,
    Kind,
    Setting,
    one_of,
    text_of,
)
from comity.gate.options.opt_outs import read_opt_outs
from comity.gate.options.profiles import NAME as PROFILE_NAME
from comity.gate.options.profiles import PROFILES, profile_name
from comity.gate.options.signing import EXAMPLE, KEY_NAME, URL_NAME, key_path, signature_agent
from comity.gate.options.store import store_path
from comity.gate.options.values import (
    arrangements,
    drafts,
    report_path,
    sessions,
    use_defaults,
    vocabulary,
)
from comity.gate.settings import DEFAULT_AGENT
from comity.policies.agent import CONTENT_USAGE as DRAFTS
from comity.policies.agent import FEATURES
from comity.policies.answers.request import PURPOSE_HEADER as PURPOSE_FIELD
from comity.policies.document.html import AUTO, TINYHTML5, TURBOHTML
from comity.policies.document.html import SETTING as PARSER_SETTING

_PROFILES = ", ".join(f"`{profile}`" for profile in PROFILES)
_FEATURES = ", ".join(f"`{feature}`" for feature in FEATURES)


def _tag(name: str, value: Any) -> TagSetting:
    return TagSetting.parse(str(value), subject=name)


AGENT = Setting(
    name="COMITY_AGENT",
    default=DEFAULT_AGENT,
    kind=TOKEN,
    meaning=(
        "the name by which sites address the crawler in their files. With the default, comity "
        "warns at the start: set your own"
    ),
    agrees=Agrees.MUST,
)
PROFILE = Setting(
    name=PROFILE_NAME,
    default="",
    kind=Kind(f'one of {_PROFILES}, or `""`', profile_name),
    meaning=(
        "a list of settings for a common wish ([profiles.md](profiles.md)). Each of them applies "
        "unless you set it yourself. Empty: none"
    ),
)
PURPOSES = Setting(
    name="COMITY_PURPOSES",
    default=(),
    kind=NAMES_OR_URIS,
    meaning=(
        "the purposes of the crawl. Sites can have rules for them ([acap.md](acap.md), "
        "[automation.md](automation.md)), and requests declare them to servers"
    ),
    agrees=Agrees.MUST,
)
USES = Setting(
    name="COMITY_USES",
    default=(),
    kind=NAMES,
    meaning=(
        "the intended uses of the content: `index`, `train`, ... The tag of every item has a "
        "decision for each"
    ),
    agrees=Agrees.MUST,
)
USE_DEFAULTS = Setting(
    name="COMITY_DEFAULTS",
    default={},
    kind=Kind("use -> `allow` or `deny`", use_defaults),
    meaning=(
        "the decision for a use that no source mentions. A use that is not named here is refused,"
        " except `follow`"
    ),
    agrees=Agrees.MUST,
)
VOCABULARY = Setting(
    name="COMITY_VOCABULARY",
    default="",
    kind=Kind("path of a TOML file", vocabulary),
    meaning=(
        "words and relations of your own, in addition to those of comity or in their place "
        "([vocabulary.md](vocabulary.md))"
    ),
    agrees=Agrees.MUST,
)
ARRANGEMENTS = Setting(
    name="COMITY_ARRANGEMENTS",
    default={},
    kind=Kind(f"host -> list of {_FEATURES}, licences, payments, license tokens", arrangements),
    meaning=(
        "your arrangements with sites ([arrangements.md](arrangements.md)). `example.com` is the "
        "host with all its ports, `example.com:8080` the one port, `*.example.com` all hosts "
        "below it"
    ),
    agrees=Agrees.MUST,
)
OPT_OUT = Setting(
    name="COMITY_OPT_OUT",
    default=(),
    kind=Kind("list of paths", read_opt_outs),
    meaning=(
        "registries of opt-outs: files with domains, URLs and works that may not be used, which "
        "refuse beside the sites' own statements ([opt-outs.md](opt-outs.md))"
    ),
    agrees=Agrees.MUST,
)
SESSIONS = Setting(
    name="COMITY_SESSIONS",
    default={},
    kind=Kind("host -> session", sessions),
    meaning=(
        "your sessions with sites, and the places of their credentials "
        "([automation.md](automation.md#sessions))"
    ),
    agrees=Agrees.MUST,
)
PURPOSE_HEADER = Setting(
    name="COMITY_PURPOSE_HEADER",
    default=PURPOSE_FIELD,
    kind=OPTIONAL_HEADER_FIELD,
    meaning='the header field that declares the purposes of a request to servers; `""`: no field',
    agrees=Agrees.SHOULD,
)
KEY_HEADER = Setting(
    name="COMITY_KEY_HEADER",
    default="X-API-Key",
    kind=HEADER_FIELD,
    meaning=(
        "the header field that carries the key of a request, as `Authorization` may, too. The "
        "token of a session is sent in this field"
    ),
    agrees=Agrees.MUST,
)
KEY = Setting(
    name=KEY_NAME,
    default="",
    kind=Kind("path of a file", key_path),
    meaning=(
        "the private key that signs all requests, so that servers can know the crawler "
        "([signatures.md](signatures.md)): Ed25519, in PEM or as a JWK. Empty: requests are not "
        "signed"
    ),
)
SIGNATURE_AGENT = Setting(
    name=URL_NAME,
    default="",
    kind=Kind(f"https URL, such as `{EXAMPLE}`", signature_agent),
    meaning=(
        "the address of the directory with your public keys, which signed requests name "
        "([signatures.md](signatures.md#publish-the-directory)). `COMITY_KEY` needs it"
    ),
    agrees=Agrees.SHOULD,
)
CONTENT_USAGE = Setting(
    name="COMITY_CONTENT_USAGE",
    default=DRAFTS,
    kind=Kind("list of names", drafts),
    meaning=(
        "the drafts by which a `Content-Usage` field is read: `usage` (draft-thomson-aipref-sup),"
        " `aipref` (draft-ietf-aipref-vocab). With both, the more restrictive outcome counts for "
        "each label ([usage-preferences.md](usage-preferences.md))"
    ),
    agrees=Agrees.MUST,
)
AUTOMATION_REQUIRED = Setting(
    name="COMITY_AUTOMATION_REQUIRED",
    default=False,
    kind=FLAG,
    meaning=(
        "True: refuse all requests to a site if its automation-preferences.txt cannot be fetched."
        " False: refuse all but GET and HEAD requests for pages "
        "([automation.md](automation.md#how-access-is-decided))"
    ),
    agrees=Agrees.MUST,
)
UNREACHABLE_USES = Setting(
    name="COMITY_UNREACHABLE_USES",
    default="deny",
    kind=one_of("deny", "default"),
    meaning=(
        "the decision about uses that a policy file could refuse, while it cannot be fetched: "
        "`deny` denies them; with `default`, `COMITY_DEFAULTS` decide, as if there were no such "
        "file ([uses.md](uses.md#while-a-policy-file-cannot-be-fetched))"
    ),
    agrees=Agrees.MUST,
)
SKIP_UNUSABLE = Setting(
    name="COMITY_SKIP_UNUSABLE",
    default=True,
    kind=FLAG,
    meaning=(
        "do not fetch pages for which every one of `COMITY_USES` is refused: sites that refuse "
        "them everywhere, and the rest of a response with header fields that refuse them "
        "([uses.md](uses.md#what-is-not-fetched))"
    ),
    agrees=Agrees.MUST,
)
DROP_UNUSABLE = Setting(
    name="COMITY_DROP_UNUSABLE",
    default=True,
    kind=FLAG,
    meaning="drop an item if none of the declared uses is permitted",
    agrees=Agrees.MUST,
)
REL_NOFOLLOW = Setting(
    name="COMITY_REL_NOFOLLOW",
    default=False,
    kind=FLAG,
    meaning=(
        "drop requests to URLs that their page links with `rel=nofollow` only "
        "([uses.md](uses.md#links))"
    ),
    agrees=Agrees.MUST,
)
CLEAN_PARAM = Setting(
    name="COMITY_CLEAN_PARAM",
    default=True,
    kind=FLAG,
    meaning=(
        "request a page once if its links differ only in parameters that a `Clean-param` line of "
        "robots.txt names. False: such links are different pages ([clean-param.md](clean-param.md))"
    ),
    agrees=Agrees.MUST,
)
ELEMENTS = Setting(
    name="COMITY_ELEMENTS",
    default="tag",
    kind=one_of("tag", "redact", "strip"),
    meaning=(
        "treatment of page elements that are refused for one of `COMITY_USES`. `tag`: the tag "
        "says where they are in the item. `redact`: they are cut out of the item. `strip`: they "
        "are cut out of the response before the spider sees it ([items.md](items.md#elements))"
    ),
    agrees=Agrees.MUST,
)
TAG = Setting(
    name="COMITY_TAG",
    default="permissions",
    kind=Kind("name of a field, `json:NAME`, `sidecar:FILE` or `off`", _tag),
    meaning=(
        "the place of an item's [tag](items.md#where-the-tag-goes): a field with this name; "
        "`json:NAME`: a field, as JSON text; `sidecar:FILE`: a file beside the feeds; `off`: "
        "nowhere"
    ),
    agrees=Agrees.SHOULD,
)
BROWSER = Setting(
    name="COMITY_BROWSER",
    default="all",
    kind=one_of("all", "documents"),
    meaning=(
        "the requests of a page in a [browser](browsers.md#what-is-judged-how) that are judged. "
        "`all`: every request. `documents`: documents and requests of scripts. Images, styles, "
        "fonts, media and scripts are then allowed with their page"
    ),
    agrees=Agrees.MUST,
)
PROGRESS = Setting(
    name="COMITY_PROGRESS",
    default="summary",
    kind=one_of("line", "summary", "off"),
    meaning=(
        "`summary`: at the end of the crawl the log (INFO) has the number of items, the refusals,"
        " and the permitted uses of the items. `line`: the summary is printed on a terminal, and "
        "before it a line with the progress. `off`: neither. The ready crawler has `line`"
    ),
)
REPORT = Setting(
    name="COMITY_REPORT",
    default="",
    kind=Kind("path of a file that ends in `.html` or `.json`", report_path),
    meaning=(
        "the file of the [report](report.md) of the crawl, written each minute and at its end. "
        "Empty: there is no report, and nothing is collected for it"
    ),
)
METRICS = Setting(
    name="COMITY_METRICS",
    default="",
    kind=PORT,
    meaning=(
        "the port for Prometheus, with the counters of the report, on this machine only "
        "([report.md](report.md#metrics)). 0: any free port. Empty: no metrics"
    ),
)
GC = Setting(
    name="COMITY_GC",
    default=True,
    kind=FLAG,
    meaning=(
        "True: tune Python's garbage collector during a crawl. It does not scan objects that "
        "exist at the start, scans young objects every 50,000 instead of every 700, and all "
        "others each minute, or more rarely, so that this takes 0.5 % of a core at most. A crawl "
        "then takes more memory, a fixed amount regardless of its length "
        "([measurements.md](measurements.md)). Cancelled timers of Twisted are dropped every 5 s."
        " Objects that the process itself has frozen (`gc.freeze`) stay frozen. False: comity "
        "does not change the collector"
    ),
)
INNER = Setting(
    name="COMITY_INNER",
    default="deny",
    kind=one_of("deny", "allow"),
    meaning=(
        "whether links, redirects and sitemaps of a site may lead to loopback, private and "
        "link-local addresses that the crawl was not started for "
        "([fetching.md](fetching.md#where-pages-may-lead-sec-7))"
    ),
    agrees=Agrees.MUST,
)
STORE = Setting(
    name="COMITY_STORE",
    default="",
    kind=Kind("path of a file", store_path),
    meaning=(
        "the file that keeps policy files between crawls and for other processes. Empty: [one for"
        " all your projects](#one-store-for-all-projects). `pace.sqlite` is beside it: crawls "
        "with stores in one folder share the pace of a host "
        "([pace.md](pace.md#several-processes))"
    ),
)
STATE = Setting(
    name="COMITY_STATE",
    default="",
    kind=text_of("URL of a server of Redis, Valkey or PostgreSQL, or `sqlite:///PATH`"),
    meaning=(
        "the store that has the queue, the seen requests, the pace of hosts and the policy "
        "files, instead of `JOBDIR` and `COMITY_STORE`. Any number of processes on any machines, "
        "or on one with SQLite, are then one crawl ([cluster.md](cluster.md))"
    ),
)
CRAWL = Setting(
    name="COMITY_CRAWL",
    default="",
    kind=text_of("letters, digits, `_`, `.` and `-`"),
    meaning="the name of the crawl at `COMITY_STATE`. Empty: the name of the spider",
)
WORKER_TIMEOUT = Setting(
    name="COMITY_WORKER_TIMEOUT",
    default=10,
    kind=SECONDS_ABOVE_0,
    meaning=(
        "after this time without a sign of life, a process of the crawl at `COMITY_STATE` counts "
        "as dead"
    ),
    agrees=Agrees.SHOULD,
)
MAX_WAITING = Setting(
    name="COMITY_MAX_WAITING",
    default=0,
    kind=NUMBER_OR_0,
    meaning="the most requests that may wait in the crawl at `COMITY_STATE`. 0: no limit",
    agrees=Agrees.SHOULD,
)
AGAIN_AFTER = Setting(
    name="COMITY_AGAIN_AFTER",
    default=0,
    kind=SECONDS,
    meaning=(
        "the time from the end of the crawl at `COMITY_STATE` to its next run, with the known "
        "policies and pace. 0: it does not run again"
    ),
    agrees=Agrees.SHOULD,
)
KEEP_SEEN = Setting(
    name="COMITY_KEEP_SEEN",
    default=0,
    kind=SECONDS_OR_ALL,
    meaning=(
        "the time for which requests count as seen in later runs of the crawl at `COMITY_STATE`, "
        "if `COMITY_AGAIN_AFTER` begins them. 0: no longer than their run. `all`: in all runs "
        "([cluster.md](cluster.md#only-new-pages))"
    ),
    agrees=Agrees.SHOULD,
)
LIMITS = Setting(
    name="COMITY_LIMITS",
    default="crawl",
    kind=one_of("crawl", "worker"),
    meaning=(
        "the scope of `CLOSESPIDER_*` with `COMITY_STATE`. `crawl`: they limit the counts and the "
        "time of the whole crawl, and end it. `worker`: they end each process by its own counts "
        "([cluster.md](cluster.md#limits-of-the-crawl))"
    ),
    agrees=Agrees.SHOULD,
)
ITEMS = Setting(
    name="COMITY_ITEMS",
    default="",
    kind=text_of("folder, or URL of a folder in an object store"),
    meaning=(
        "the folder to which all processes of a crawl write their items, in complete files. It can"
        " be read at any time ([datasets.md](datasets.md#the-folder-of-a-crawl)). Empty: none"
    ),
)
ITEMS_FORMAT = Setting(
    name="COMITY_ITEMS_FORMAT",
    default="jsonl",
    kind=one_of("jsonl", "parquet", "warc", "warc.gz"),
    meaning="the format of the files in `COMITY_ITEMS`",
    agrees=Agrees.SHOULD,
)
PART_SECONDS = Setting(
    name="COMITY_PART_SECONDS",
    default=60,
    kind=SECONDS,
    meaning=(
        "the least time for which a part of a feed grows, in `COMITY_ITEMS` and in a crawl with "
        "`JOBDIR` or `COMITY_STATE`. After a kill, the pages of this time are fetched again "
        "([scheduler.md](scheduler.md#items-are-on-the-disk-before-their-pages-are-done))"
    ),
    agrees=Agrees.SHOULD,
)
PART_OCTETS = Setting(
    name="COMITY_PART_OCTETS",
    default=128 * 2**20,
    kind=NUMBER_OR_0,
    meaning=(
        "the size in octets at which a part of a feed is complete, before `COMITY_PART_SECONDS`. "
        "0: any size"
    ),
    agrees=Agrees.SHOULD,
)
POLICY_TIMEOUT = Setting(
    name="COMITY_POLICY_TIMEOUT",
    default=15,
    kind=SECONDS_ABOVE_0,
    meaning="the limit for one policy file, with all its redirects",
    agrees=Agrees.SHOULD,
)
PROXY = Setting(
    name="COMITY_PROXY",
    default="",
    kind=text_of('URL of an HTTP proxy, `direct`, or `""`'),
    meaning=(
        "the proxy for policy files. `direct`: none. Empty: the proxy of `HTTP_PROXY`, "
        "`HTTPS_PROXY` and `NO_PROXY` in the environment "
        "([fetching.md](fetching.md#nobody-comes-in-between))"
    ),
)
DOWNLOAD_HANDLER = Setting(
    name="COMITY_DOWNLOAD_HANDLER",
    default=False,
    kind=FLAG,
    meaning=(
        "True: the client for policy files fetches pages too, in place of Scrapy's download "
        "handlers for http and https ([fetching.md](fetching.md#one-client-for-policy-files-and-"
        "pages)). False: Scrapy fetches pages"
    ),
)
MIN_DELAY = Setting(
    name="COMITY_MIN_DELAY",
    default=1,
    kind=SECONDS,
    meaning=(
        "the least time between two requests to a host. If the host asks for more, that counts "
        "([pace.md](pace.md)). 0: hosts that ask for no delay get none"
    ),
    agrees=Agrees.MUST,
)
MAX_DELAY = Setting(
    name="COMITY_MAX_DELAY",
    default=300,
    kind=SECONDS,
    meaning=(
        "the longest time that a crawl waits for a host, between two requests or before the next "
        "one. Requests to a slower host are set aside, and kept with `JOBDIR` "
        "([pace.md](pace.md#hosts-that-are-too-slow))"
    ),
    agrees=Agrees.SHOULD,
)
HTML_PARSER = Setting(
    name=PARSER_SETTING,
    default=AUTO,
    kind=one_of(AUTO, TURBOHTML, TINYHTML5),
    meaning=(
        "the parser of HTML pages ([dependencies.md](dependencies.md#two-parsers-of-html)), for "
        "the whole process. `auto`: `turbohtml` if it is installed, else `tinyhtml5`. The guard "
        "and commands without settings read the environment variable of the same name"
    ),
    agrees=Agrees.SHOULD,
)

SETTINGS: tuple[Setting[Any], ...] = tuple(
    value for value in dict(globals()).values() if isinstance(value, Setting)
)
