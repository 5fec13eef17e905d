"""automation-preferences.txt: by which methods, for what, with which tools and how often a site may be automated.

    parse(text) -> Automation       grammar.py: what the file says, group by group
    Rules(automation, token, host)  resolution.py: which group speaks, and what it refuses
    annotations(content)            annotation.py: what a page says of itself in JSON-LD

Specifications: draft-liao-aipref-autoctl-core-01 and its extension, draft-liao-aipref-autoctl-ext."""
