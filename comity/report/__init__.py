"""The report of a crawl: one page, the same as data, and the same counters as metrics (docs/report.md).

collector.py    hears what a crawl does (comity.gate.run.observer) and counts it, in bounded memory
items.py        counts tags, of a crawl or of a dataset
value.py        the report as a value, and as JSON (schema 1)
sources.py      a report out of a file: a saved one, items, a policy store, statistics
advice.py       which settings would change most
difference.py   what has changed from one report to another
page.py         the report as a page, with the pictures of pictures.py
metrics.py      the counters for Prometheus"""
