"""The site of `attacked` behind one proxy."""

from __future__ import annotations

import os

from comity.guard import ASGIMiddleware, Guard, WSGIMiddleware, behind_proxies
from tests.guard.attacked import FILES, site, wsgi_site

guard = Guard(os.environ.get("ORIGIN", "http://127.0.0.1:8000"), FILES, client=behind_proxies())
asgi = ASGIMiddleware(site, guard)
wsgi = WSGIMiddleware(wsgi_site, guard)
