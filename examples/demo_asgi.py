"""The demonstration site of `comity demo`, for an ASGI server. What its guard did so far: /guard.

uvicorn --app-dir examples demo_asgi:app"""

from __future__ import annotations

import os

from comity.crawler.demo import Demonstration

app = Demonstration(os.environ.get("ORIGIN", "http://127.0.0.1:8000")).asgi
