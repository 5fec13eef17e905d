"""Captures of policy files that others have made, or this program at other times: what a site said at a moment.

    sources.py      where they stand: WARC files, folders, and whatever else gives captures
    index.py        all of them in an SQLite file, so that a million origins take little memory
    captures.py     the policies of an origin at a moment, out of the index
How they are read stands in docs/policy-captures.md."""
