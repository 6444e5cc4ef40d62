# SPDX-License-Identifier: Apache-2.0
"""HTTP to anything inside a cluster's namespace: health endpoints, pods."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import urllib.parse

from .network import Network

TIMEOUT_SECONDS = 5
MAX_BODY_BYTES = 64 << 20


def _unverified_tls() -> ssl.SSLContext:
    """For questions without secrets to servers that make their own certificates."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def fetch(network: Network, url: str, method: str = "GET", body: str | bytes | None = None,
          headers: dict[str, str] | None = None,
          timeout_seconds: float = TIMEOUT_SECONDS) -> tuple[int, bytes]:
    """Status and body of one request. OSError when there is no whole answer."""
    parts = urllib.parse.urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    sock = network.connect(parts.hostname, port, timeout_seconds)
    sock.settimeout(timeout_seconds)
    if parts.scheme == "https":
        sock = _unverified_tls().wrap_socket(sock)
    with contextlib.closing(http.client.HTTPConnection(parts.hostname, port)) as connection:
        connection.sock = sock
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(MAX_BODY_BYTES)
        except http.client.HTTPException as error:
            raise ConnectionError(f"{url}: {error!r}") from error
