# SPDX-License-Identifier: Apache-2.0
"""Certificate authorities and certificates for the tests, made by openssl."""

import os
import ssl
import subprocess


def openssl(*words, cwd):
    subprocess.run(["openssl", *words], cwd=cwd, check=True, capture_output=True)


class Authority:
    """A CA of its own in dir/name.crt; signs what it is asked for."""

    def __init__(self, directory, name):
        self.dir, self.name = directory, name
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt",
                "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign", cwd=directory)
        self.certificate = os.path.join(directory, name + ".crt")

    def sign(self, name, names="IP:127.0.0.1", expired=False):
        """A certificate and its key: paths."""
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.csr", cwd=self.dir)
        with open(os.path.join(self.dir, name + ".ext"), "w", encoding="utf-8") as f:
            f.write(f"subjectAltName={names}\n")
        # openssl 3.0 refuses "-days 0" and dates of its own in x509; a CA run takes them.
        if expired:
            self._sign_expired(name)
        else:
            openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.crt", "-CAkey", f"{self.name}.key",
                    "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt", cwd=self.dir)
        return os.path.join(self.dir, name + ".crt"), os.path.join(self.dir, name + ".key")

    def _sign_expired(self, name):
        with open(os.path.join(self.dir, "ca.cnf"), "w", encoding="utf-8") as f:
            f.write("[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nserial=serial.txt\nnew_certs_dir=.\ndefault_md=sha256\n"
                    "policy=p\n[p]\ncommonName=supplied\n")
        with open(os.path.join(self.dir, "index.txt"), "w", encoding="utf-8"):
            pass
        with open(os.path.join(self.dir, "serial.txt"), "w", encoding="utf-8") as f:
            f.write("0a\n")
        openssl("ca", "-batch", "-config", "ca.cnf", "-cert", f"{self.name}.crt", "-keyfile", f"{self.name}.key",
                "-startdate", "20200101000000Z", "-enddate", "20200102000000Z", "-in", f"{name}.csr",
                "-extfile", f"{name}.ext", "-out", f"{name}.crt", "-notext", cwd=self.dir)


def server_context(certificate, key, client_authority=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if client_authority:
        context.load_verify_locations(client_authority)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
