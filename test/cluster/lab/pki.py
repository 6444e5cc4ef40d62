# SPDX-License-Identifier: Apache-2.0
"""Certificates of one cluster, made with openssl: a CA, a server, and one client per user."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from .errors import LabError

# A test cluster does not live this long; a certificate that expires early is a test of its own.
VALID_DAYS = 365
_CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise LabError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")


class Pki:
    """The certificates in one directory; each is made when first asked for."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ca = directory / "ca.crt"
        self.service_account_key = directory / "service-account.key"

    def create(self) -> None:
        """Makes the CA and the key that signs service-account tokens, once."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o700)
        if not self.ca.exists():
            part = self.directory / "ca.part"
            _openssl("req", "-x509", *_CURVE, "-days", str(VALID_DAYS), "-subj", "/CN=pernode-test",
                     "-keyout", self.directory / "ca.key", "-out", part)
            os.replace(part, self.ca)
        if not self.service_account_key.exists():
            part = self.directory / "service-account.part"
            _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", part)
            os.replace(part, self.service_account_key)

    def leaf(self, name: str, subject: str, alternative_names: str = "") -> tuple[Path, Path]:
        """Certificate and key of one server or client, signed by the CA."""
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        if certificate.exists():
            return certificate, key
        request = self.directory / f"{name}.csr"
        extensions = self.directory / f"{name}.ext"
        part = self.directory / f"{name}.part"
        extensions.write_text(f"subjectAltName={alternative_names}\n" if alternative_names
                              else "extendedKeyUsage=clientAuth\n", encoding="ascii")
        _openssl("req", "-new", *_CURVE, "-subj", subject, "-keyout", key, "-out", request)
        _openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.directory / "ca.key",
                 "-CAcreateserial", "-days", str(VALID_DAYS), "-out", part, "-extfile", extensions)
        request.unlink()
        extensions.unlink()
        os.replace(part, certificate)
        return certificate, key


def kubeconfig(server: str, ca: str, certificate: str, key: str) -> str:
    """A kubeconfig (JSON is YAML) for one user who has a client certificate. Paths of files."""
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": server, "certificate-authority": ca}}],
        "users": [{"name": "me", "user": {"client-certificate": certificate, "client-key": key}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}}],
    }, indent=1)
