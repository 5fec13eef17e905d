"""Captures: copies of policy files from web archives and earlier crawls, each with its moment.

    sources.py      the sources of captures: WARC files and folders
    index.py        all captures in an SQLite file, so that a million origins take little memory
    captures.py     the policies of an origin at a moment, from the index

docs/policy-captures.md describes how captures are read."""
