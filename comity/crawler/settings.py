"""Settings of the ready crawler (scrapy.cfg): the add-on and the ready spiders, at a modest pace.

Anywhere else: SCRAPY_SETTINGS_MODULE=comity.crawler.settings scrapy crawl site -a url=..."""

from comity.crawler.feeds import EXPORTERS

BOT_NAME = "comity"
SPIDER_MODULES = ["comity.spiders"]
ADDONS = {"comity.crawler.addon.Addon": 100}
EXTENSIONS = {"comity.crawler.progress.Progress": 0}
LOG_LEVEL = "INFO"
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_TIMEOUT = 60
STATS_DUMP = False  # the summary says it in fewer lines
FEED_EXPORT_ENCODING = "utf-8"
FEED_EXPORTERS = EXPORTERS
