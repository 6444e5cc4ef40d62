# SPDX-License-Identifier: Apache-2.0
"""Single calls: identity, certificates, tokens, refusals, deadlines."""

import base64
import json
import os
import shutil
import unittest

from certificates import Authority, server_context
from harness import Case
from server import bookmark


def ok(_request, connection):
    connection.answer(body={"ok": 1})


class Calls(Case):
    def call(self, scenario, line, **arguments):
        self.serve(scenario)
        probe = self.start(path=None, **arguments)
        probe.say(line)
        return probe.until("answer")

    def test_a_patch_is_sent_as_it_is(self):
        body = '{"metadata":{"annotations":{"a b":"\u00e9"}}}'
        line = self.call(ok, "call PATCH /api/v1/nodes/n?fieldManager=x " + body)
        self.assertEqual(line, "answer 200 0 0 9 - | ")
        request = self.server.requests[0]
        self.assertEqual((request.method, request.target), ("PATCH", "/api/v1/nodes/n?fieldManager=x"))
        self.assertEqual(request.headers["content-type"], "application/merge-patch+json")
        self.assertEqual(request.body.decode(), body)
        self.assertNotIn("expect", request.headers)

    def test_a_large_patch_arrives_whole(self):
        body = json.dumps({"x": "y" * 60000})
        line = self.call(ok, "call PATCH /p " + body)
        self.assertTrue(line.startswith("answer 200 "), line)
        self.assertEqual(self.server.requests[0].body.decode(), body)

    def test_other_methods(self):
        for method in ("GET", "POST", "DELETE"):
            with self.subTest(method):
                line = self.call(ok, f"call {method} /x")
                self.assertTrue(line.startswith("answer 200 0"), line)
                self.assertEqual(self.server.requests[0].method, method)

    def test_refusals_come_with_status_reason_and_message(self):
        for code, reason in ((403, "Forbidden"), (404, "NotFound"), (409, "Conflict"), (422, "Invalid"),
                             (500, "InternalError"), (429, "TooManyRequests")):
            with self.subTest(code):
                line = self.call(lambda r, c, code=code, reason=reason: c.status(
                    code, reason, message='nodes "n" is no good', headers=["Retry-After: 3"]), "call PATCH /api/v1/nodes/n {}")
                self.assertRegex(line, rf"^answer {code} 0 3000 \d+ {reason} \| PATCH http://127.0.0.1:\d+/api/v1/nodes/n: "
                                       rf'{code} {reason}: nodes "n" is no good$')
                self.assertEqual(len(self.server.requests), 1, "nothing is retried here")

    def test_a_refusal_in_html_has_no_reason(self):
        line = self.call(lambda r, c: c.answer(403, b"<html>" + b"x" * 100000, content_type="text/html"), "call GET /x")
        self.assertRegex(line, r"^answer 403 0 0 \d+ - \| GET http://127.0.0.1:\d+/x: 403$")

    def test_retry_after_as_a_date(self):
        line = self.call(lambda r, c: c.status(503, "X", headers=["Retry-After: Wed, 01 Jan 2000 00:00:00 GMT"]), "call GET /x")
        self.assertTrue(line.startswith("answer 503 0 0 "), line)

    def test_a_redirection_is_not_followed(self):
        line = self.call(lambda r, c: c.answer(302, b"", headers=[f"Location: {self.server.url}/other"]), "call GET /x")
        self.assertTrue(line.startswith("answer 302 0 "), line)
        self.assertEqual(len(self.server.requests), 1)

    def test_an_answer_that_is_no_json_is_no_answer(self):
        line = self.call(lambda r, c: c.answer(200, b"<html>", content_type="text/html"), "call GET /x")
        self.assertTrue(line.startswith("answer 200 71 "), line)  # EPROTO
        self.assertIn("not JSON", line)

    def test_an_answer_over_the_maximum_is_refused(self):
        line = self.call(lambda r, c: c.answer(body=b'"' + b"x" * 70000 + b'"'), "call GET /x")
        self.assertTrue(line.startswith("answer 200 90 "), line)  # EMSGSIZE

    def test_a_deadline_ends_a_call(self):
        line = self.call(lambda r, c: c.stay(), "call GET /x", call_timeout_ms=100)
        self.assertTrue(line.startswith("answer 0 110 "), line)  # ETIMEDOUT

    def test_a_cut_answer_is_no_answer(self):
        def cut(_request, connection):
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
            connection.close()
        line = self.call(cut, "call GET /x")
        self.assertTrue(line.startswith("answer 200 104 "), line)  # ECONNRESET

    def test_a_path_with_blanks_is_not_sent(self):
        self.serve(ok)
        probe = self.start(path=None)
        probe.say("call GET x")
        self.assertIn("must begin with /", probe.until("not started"))
        probe.say("call GET /a\x01b")
        self.assertIn("percent-encoded", probe.until("not started"))

    def test_many_calls_share_few_connections(self):
        self.serve(ok)
        probe = self.start(path=None)
        for _ in range(40):
            probe.say("call GET /x")
        for _ in range(40):
            self.assertTrue(probe.until("answer").startswith("answer 200 0"))
        self.assertLessEqual(self.server.connections, 8)

    def test_proxies_of_the_environment_are_not_used(self):
        line = self.call(ok, "call GET /x", environment={"http_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"})
        self.assertTrue(line.startswith("answer 200 0"), line)


class Certificates(Case):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.dir.name, "authority")

    def serve_tls(self, name="server", names="IP:127.0.0.1", expired=False, authority=None, clients=None):
        certificate, key = (authority or self.authority).sign(name, names, expired)
        return self.serve(ok, server_context(certificate, key, clients))

    def ask(self, kubeconfig=None, **arguments):
        probe = self.start(kubeconfig or self.kubeconfig(f"certificate-authority: {self.authority.certificate}"), path=None,
                           **arguments)
        probe.say("call GET /x")
        return probe.until("answer")

    @staticmethod
    def inline(path):
        with open(path, "rb") as f:
            return base64.b64encode(f.read()).decode()

    def test_the_right_server_is_trusted(self):
        self.serve_tls()
        self.assertTrue(self.ask().startswith("answer 200 0"))

    def test_inline_authority(self):
        self.serve_tls()
        line = self.ask(self.kubeconfig(f"certificate-authority-data: {self.inline(self.authority.certificate)}"))
        self.assertTrue(line.startswith("answer 200 0"), line)

    def test_another_authority_is_not_trusted(self):
        other = Authority(self.dir.name, "other")
        self.serve_tls(authority=other)
        line = self.ask()
        self.assertTrue(line.startswith("answer 0 129 "), line)  # EKEYREJECTED
        self.assertFalse(self.server.requests, "nothing was sent, above all no token")

    def test_without_an_authority_the_machines_own_are_asked(self):
        self.serve_tls()
        self.assertTrue(self.ask(self.kubeconfig()).startswith("answer 0 129 "))

    def test_an_expired_certificate_is_not_trusted(self):
        self.serve_tls(expired=True)
        line = self.ask()
        self.assertTrue(line.startswith("answer 0 129 "), line)
        self.assertIn("in date", line)

    def test_the_name_must_fit(self):
        self.serve_tls(names="IP:127.0.0.2")
        self.assertTrue(self.ask().startswith("answer 0 129 "))

    def test_a_server_name_of_its_own(self):
        self.serve_tls(names="DNS:kubernetes.default.svc")
        line = self.ask(self.kubeconfig(
            f"certificate-authority: {self.authority.certificate}\n    tls-server-name: kubernetes.default.svc"))
        self.assertTrue(line.startswith("answer 200 0"), line)

    def test_client_certificates_as_files_and_inline(self):
        certificate, key = self.authority.sign("jane", "DNS:jane")
        for user in (f"client-certificate: {certificate}\n    client-key: {key}",
                     f"client-certificate-data: {self.inline(certificate)}\n    client-key-data: {self.inline(key)}",
                     "client-certificate: jane.crt\n    client-key: jane.key"):
            with self.subTest(user[:24]):
                self.serve_tls(clients=self.authority.certificate)
                line = self.ask(self.kubeconfig(f"certificate-authority: {self.authority.certificate}", user))
                self.assertTrue(line.startswith("answer 200 0"), line)
                self.assertIn((("commonName", "jane"),), self.server.requests[0].client_certificate["subject"])
                self.assertNotIn("authorization", self.server.requests[0].headers)

    def test_a_rotated_authority_is_read_again(self):
        """The server gets a certificate of a new authority, and the file at the same path the new authority."""
        shutil.copy(self.authority.certificate, self.path("ca.crt"))
        other = Authority(self.dir.name, "other")
        self.serve_tls()
        probe = self.start(self.kubeconfig("certificate-authority: ca.crt"), path=None)
        probe.say("call GET /x")
        self.assertTrue(probe.until("answer").startswith("answer 200 0"))
        self.server.tls = server_context(*other.sign("second"))
        self.server.scenario = lambda r, c: (ok(r, c), c.close())
        probe.say("call GET /x")  # on the connection that is open
        self.assertTrue(probe.until("answer").startswith("answer 200 0"))
        probe.say("call GET /x")
        self.assertTrue(probe.until("answer").startswith("answer 0 129 "), "the old authority does not vouch for it")
        with open(other.certificate, encoding="utf-8") as f:
            self.write("ca.crt", f.read())
        probe.say("call GET /x")
        self.assertTrue(probe.until("answer").startswith("answer 200 0"))

    def test_a_half_written_authority_is_an_error_and_no_more(self):
        shutil.copy(self.authority.certificate, self.path("ca.crt"))
        self.serve_tls()
        self.server.scenario = lambda r, c: (ok(r, c), c.close())
        probe = self.start(self.kubeconfig("certificate-authority: ca.crt"), path=None)
        for content, expected in (("", 0), ("-----BEGIN CERTIFICATE-----\nMIIB", 0), (None, 0), ("good", 200)):
            with self.subTest(content):
                if content is None:
                    os.unlink(self.path("ca.crt"))
                elif content == "good":
                    shutil.copy(self.authority.certificate, self.path("ca.crt"))
                else:
                    self.write("ca.crt", content)
                probe.say("call GET /x")
                line = probe.until("answer")
                self.assertTrue(line.startswith(f"answer {expected} {0 if expected else 129} "), line)


class Pod(Case):
    """The service account of a pod."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.dir.name, "authority")
        shutil.copy(self.authority.certificate, self.path("ca.crt"))
        self.write("token", "first\n")

    def start_pod(self, scenario, **arguments):
        self.serve(scenario, server_context(*self.authority.sign("server")))
        return self.start(environment={"KUBERNETES_SERVICE_HOST": "127.0.0.1",
                                       "KUBERNETES_SERVICE_PORT": str(self.server.port)},
                          pod=self.dir.name, **arguments)

    def tokens(self):
        return [r.headers.get("authorization") for r in self.server.requests]

    def test_the_service_account_is_used(self):
        probe = self.start_pod(ok, path=None)
        probe.say("call GET /x")
        self.assertTrue(probe.until("answer").startswith("answer 200 0"))
        self.assertEqual(self.tokens(), ["Bearer first"])

    def test_a_refused_token_is_read_again_at_once(self):
        def scenario(request, connection):
            if request.headers["authorization"] == "Bearer second":
                ok(request, connection)
            else:
                connection.status(401, "Unauthorized")

        probe = self.start_pod(scenario, path=None)
        probe.say("call GET /x")
        self.assertTrue(probe.until("answer").startswith("answer 401 0"))
        self.write("token", "second\n")
        probe.say("call GET /x")
        self.assertTrue(probe.until("answer").startswith("answer 200 0"))
        self.assertEqual(self.tokens(), ["Bearer first", "Bearer second"])

    def test_a_watch_gets_over_a_rotation(self):
        def scenario(request, connection):
            if request.headers["authorization"] != "Bearer second":
                connection.status(401, "Unauthorized")
                return
            connection.start_stream()
            connection.chunk(bookmark(3, end=True))
            connection.stay()

        probe = self.start_pod(scenario)
        probe.until("trouble unauthorized")
        self.write("token", "second\n")
        probe.until("synced")

    def test_a_token_that_cannot_be_read_leaves_the_old_one_and_is_named(self):
        answers = iter([401, 401, 401, 401, 200])

        def scenario(request, connection):
            code = next(answers)
            if code == 200:
                ok(request, connection)
            else:
                connection.status(code, "Unauthorized", message="no")

        probe = self.start_pod(scenario, path=None)
        probe.say("call GET /x")
        probe.until("answer")
        for content, said in ((None, "No such file"), ("", "empty"), ("a\r\nX-Forged: 1", "no token")):
            if content is None:
                os.unlink(self.path("token"))
            else:
                self.write("token", content)
            probe.say("call GET /x")
            line = probe.until("answer")
            self.assertIn("token file", line)
            self.assertIn(said, line)
        self.write("token", "fine")
        probe.say("call GET /x")
        self.assertTrue(probe.until("answer").startswith("answer 200 0"))
        self.assertEqual(self.tokens(), ["Bearer first"] * 4 + ["Bearer fine"])


class Kubeconfig(Case):
    def refused(self, cluster="", user="token: secret", url=None):
        self.serve(ok)
        probe = self.start(self.kubeconfig(cluster, user, url), path=None)
        return probe.until("failed")

    def _end_probe(self, probe):
        self.assertIn(probe.stop(), (0, 1))  # 1: it said why, and that is what is looked at here

    def test_what_is_not_supported_is_named(self):
        self.assertIn("exec is not supported", self.refused(user="exec: {command: aws}"))
        self.assertIn("auth-provider is not supported", self.refused(user="auth-provider: {name: gcp}"))
        self.assertIn("insecure-skip-tls-verify is not supported", self.refused("insecure-skip-tls-verify: true"))
        self.assertIn("proxy-url is not supported", self.refused("proxy-url: http://p"))
        self.assertIn("https", self.refused(url="http://10.0.0.1:6443"))

    def test_a_token_file(self):
        self.write("tok", "from-file\n")
        self.serve(ok)
        probe = self.start(self.kubeconfig(user="tokenFile: tok"), path=None)
        probe.say("call GET /x")
        probe.until("answer 200")
        self.assertEqual(self.server.requests[0].headers["authorization"], "Bearer from-file")

    def test_no_kubeconfig_at_all(self):
        self.serve(ok)
        self.assertIn("cannot open", self.start("/nonexistent", path=None).until("failed 2"))


if __name__ == "__main__":
    unittest.main()
