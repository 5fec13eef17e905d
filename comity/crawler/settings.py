"""Settings of the ready crawler: the add-on and the ready spiders, at a modest pace.

In this checkout (scrapy.cfg), and outside of projects: comity crawl site -a url=...
In another project: SCRAPY_SETTINGS_MODULE=comity.crawler.settings comity crawl site -a url=..."""

BOT_NAME = "comity"
SPIDER_MODULES = ["comity.spiders"]
ADDONS = {"comity.crawler.addon.Addon": 100}
COMITY_PROGRESS = "line"
LOG_LEVEL = "INFO"
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_TIMEOUT = 60
STATS_DUMP = False  # the last line of a crawl sums it up in fewer words
FEED_EXPORT_ENCODING = "utf-8"
