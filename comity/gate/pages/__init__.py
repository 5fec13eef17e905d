"""Responses as pages, and the resources that have to be fetched with them."""
