"""Responses as pages, and what has to be fetched with them."""
