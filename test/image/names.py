# SPDX-License-Identifier: Apache-2.0
"""A name server and an API server with no Nodes, in namespaces of their own: names.py BINARY FOLDER NAME…

For each NAME the binary is run with a kubeconfig whose server has that name. Prints one JSON line per name: exit code,
output, and the names that the name server was asked for. test_image.py lays the certificate, hosts and resolv.conf into
FOLDER and starts this with unshare.
"""

import http.server
import json
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import threading

ADDRESS = "127.0.0.1"
A_RECORD = 1


def question(packet):
    """The name and type that are asked for, and where the question ends."""
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1:at + 1 + packet[at]].decode())
        at += 1 + packet[at]
    return ".".join(labels), struct.unpack_from(">H", packet, at + 1)[0], at + 5


def serve_names(sock, asked):
    """Knows every name that ends in .test, at ADDRESS."""
    while True:
        packet, client = sock.recvfrom(512)
        name, kind, end = question(packet)
        asked.append(name)
        known = name.endswith(".test")
        answer = b""
        if known and kind == A_RECORD:
            answer = b"\xc0\x0c" + struct.pack(">HHIH", A_RECORD, 1, 60, 4) + socket.inet_aton(ADDRESS)
        flags = 0x8180 if known else 0x8183
        sock.sendto(packet[:2] + struct.pack(">HHHHH", flags, 1, bool(answer), 0, 0) + packet[12:end] + answer, client)


class NoNodes(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if "sendInitialEvents" in self.path:
            return self.send_error(422)
        body = b'{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main(binary, folder, names):
    folder = pathlib.Path(folder)
    for command in (["ip", "link", "set", "lo", "up"], ["mount", "--bind", folder / "hosts", "/etc/hosts"],
                    ["mount", "--bind", folder / "resolv.conf", "/etc/resolv.conf"]):
        subprocess.run(command, check=True)
    asked = []
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((ADDRESS, 53))
    threading.Thread(target=serve_names, args=(udp, asked), daemon=True).start()
    server = http.server.ThreadingHTTPServer((ADDRESS, 0), NoNodes)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in names:
        kubeconfig = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                      "clusters": [{"name": "c", "cluster": {"server": f"https://{name}:{server.server_port}",
                                                             "certificate-authority": str(folder / "cert.pem")}}],
                      "users": [{"name": "u", "user": {"token": "t"}}],
                      "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}
        (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
        asked.clear()
        done = subprocess.run([binary, "remove-annotations", f"--kubeconfig={folder}/kubeconfig", "--timeout=3s"],
                              capture_output=True, text=True, timeout=60)
        print(json.dumps({"exit": done.returncode, "output": done.stdout + done.stderr, "asked": asked}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
