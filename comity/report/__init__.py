"""The report of a crawl: as a page, as data, and as metrics for Prometheus (docs/report.md).

collector.py    counts the events of a crawl (comity.gate.run.observer), in bounded memory
items.py        counts tags, of a crawl or of a dataset
value.py        the report as a value, and as JSON (schema 1)
sources.py      a report from a file: a saved report, items, a policy store, statistics
advice.py       the settings that would change most
difference.py   the changes from one report to another
page.py         the report as a page, with the pictures of pictures.py
metrics.py      the counters for Prometheus"""
