"""HTTP: the JSON API, the live stream, metrics, health and the page. Needs the extra `serve`.

`create_app` is all that the server uses. What there is to ask is in one table, `routes.py`.
"""

from bloomtide.server.http.app import create_app
from bloomtide.server.http.parts import Limits

__all__ = ["Limits", "create_app"]
