"""Scrapy glue: fetches, keeps, counts, obeys."""
