# SPDX-License-Identifier: Apache-2.0
"""List and watch against a server that misbehaves."""

import gzip
import itertools
import json
import time
import unittest

from harness import Case, picture
from server import Server, bookmark, error_event, event, pod, pod_list


def kinds(requests):
    return [r.kind for r in requests]


class Scripted:
    """A scenario that is a list of steps, one per request, each a function of (request, connection); the last stays."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def __call__(self, request, connection):
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        step(request, connection)


def stream(*parts, end=None):
    """A watch that sends the parts, then: stays (None), ends in order ("end"), or "close" or "reset"."""
    def step(_request, connection):
        connection.start_stream()
        for part in parts:
            connection.chunk(part)
        if end is None:
            connection.stay()
        elif end == "end":
            connection.end_stream()
        else:
            getattr(connection, end)()
    return step


def status(code, reason="X", headers=()):
    return lambda _request, connection: connection.status(code, reason, headers=headers)


def answer(body, **more):
    return lambda _request, connection: connection.answer(body=body, **more)


def stay_unanswered(_request, connection):
    connection.stay()


WHOLE = (event("ADDED", pod("a", 1)), event("ADDED", pod("b", 2)), bookmark(2, end=True))


class Cuts(Case):
    PICTURE = event("ADDED", pod("a", 1)) + event("ADDED", pod("b", 2)) + bookmark(2, end=True)
    CHANGES = (event("MODIFIED", pod("a", 3, spec={"x": "\u00e9\"\\{"})), event("DELETED", pod("b", 4)), bookmark(5),
               event("ADDED", pod("c", 6)))
    FINAL = {"default/a": "3", "default/c": "6"}

    def cut_everywhere(self, how, step):
        """One round per place: the first watch is cut there, the rest is served in order, then the version is gone."""
        everything = self.PICTURE + b"".join(self.CHANGES)
        places = iter(range(0, len(everything) + 1, step))
        state = {"cut": None}

        def scenario(request, connection):
            if request.kind == "watch_list" and state["cut"] is None:
                state["cut"] = next(places, len(everything))
                connection.start_stream()
                connection.chunk(everything[:state["cut"]])
                getattr(connection, how)()
                return
            connection.start_stream()
            if request.kind == "watch_list":
                connection.chunk(everything)
            else:
                version = int(request.query["resourceVersion"])
                for n, part in zip((3, 4, 5, 6), self.CHANGES):
                    if n > version:
                        connection.chunk(part)
            state["cut"] = None
            connection.chunk(error_event(410, "Expired"))
            connection.end_stream()

        self.serve(scenario)
        probe = self.start()
        rounds = len(range(0, len(everything) + 1, step))
        for n in range(rounds):
            while not probe.until("trouble").startswith("trouble expired"):
                pass
            self.assertEqual(picture(probe.lines), self.FINAL, f"round {n}: {probe.lines}")
            probe.lines.clear()
            # what the next round starts from is what this one ended with
            probe.lines += ["begin", "ADDED default/a@3 1", "ADDED default/c@6 1", "synced"]

    def test_a_stream_closed_at_every_byte_loses_nothing(self):
        self.cut_everywhere("close", 1)

    def test_a_stream_ended_in_order_at_every_byte_loses_nothing(self):
        self.cut_everywhere("end_stream", 3)

    def test_a_stream_reset_at_any_byte_loses_nothing(self):
        self.cut_everywhere("reset", 5)

    def test_a_stream_that_comes_byte_by_byte_is_the_same_stream(self):
        everything = self.PICTURE + b"".join(self.CHANGES)
        self.serve(Scripted(stream(*(everything[i:i + 1] for i in range(len(everything))))))
        probe = self.start()
        probe.until("ADDED default/c@6")
        self.assertEqual(picture(probe.lines), self.FINAL)
        self.assertNotIn("abort", probe.lines)

    def test_a_list_cut_at_every_byte_is_fetched_again(self):
        body = json.dumps(pod_list(2, [pod("a", 1), pod("b", 2)])).encode()
        places = iter(range(0, len(body)))
        state = {"cut": True}

        def scenario(request, connection):
            if request.kind == "watch":
                connection.start_stream()
                connection.chunk(error_event(410, "Expired"))
                connection.end_stream()
                state["cut"] = True
                return
            self.assertEqual(request.kind, "list")
            if not state["cut"]:
                connection.answer(body=body)
                return
            state["cut"] = False
            connection.start_stream()
            connection.chunk(body[:next(places, 0)])
            connection.end_stream()

        self.serve(scenario)
        probe = self.start(no_watch_list=1)
        for _ in range(len(body)):
            self.assertIn("protocol", probe.until("trouble"))
            probe.until("trouble expired")
            self.assertEqual(picture(probe.lines), {"default/a": "1", "default/b": "2"})
            probe.lines.clear()


class Picture(Case):
    def test_a_picture_by_watch_asks_for_what_it_needs(self):
        server = self.serve(Scripted(stream(*WHOLE)))
        probe = self.start(field="spec.nodeName=a/b&c")
        probe.until("synced")
        query = server.requests[0].query
        self.assertEqual(query["watch"], "1")
        self.assertEqual(query["sendInitialEvents"], "true")
        self.assertEqual(query["resourceVersionMatch"], "NotOlderThan")
        self.assertEqual(query["allowWatchBookmarks"], "true")
        self.assertEqual(query["fieldSelector"], "spec.nodeName=a/b&c")
        self.assertTrue(900 <= int(query["timeoutSeconds"]) < 1800)
        headers = server.requests[0].headers
        self.assertEqual(headers["accept"], "application/json")
        self.assertEqual(headers["authorization"], "Bearer secret")
        self.assertEqual(headers["user-agent"], "probe/1.0")
        self.assertNotIn("accept-encoding", headers)
        self.assertEqual(len(server.requests), 1)

    def test_where_initial_events_are_refused_pages_are_listed(self):
        for code in (400, 422):
            with self.subTest(code):
                server = self.serve(Scripted(
                    status(code, "Invalid"), answer(pod_list(7, [pod("a", 1)], token="t/+=&")),
                    answer(pod_list(7, [pod("b", 2)])), stream()))
                probe = self.start(page=1)
                probe.until("connected")
                self.assertEqual(picture(probe.lines), {"default/a": "1", "default/b": "2"})
                self.assertEqual(kinds(server.requests), ["watch_list", "list", "more", "watch"])
                self.assertEqual(server.requests[1].query["limit"], "1")
                self.assertEqual(server.requests[2].query["continue"], "t/+=&")
                self.assertEqual(server.requests[3].query["resourceVersion"], "7")
                self.assertFalse([line for line in probe.lines if line.startswith("trouble")])

    def test_an_old_server_that_ignores_the_parameter_is_listed(self):
        server = self.serve(Scripted(
            stream(event("ADDED", pod("a", 1)), bookmark(5)), answer(pod_list(7, [pod("a", 1)])), stream()))
        probe = self.start()
        probe.until("synced")
        server.wait_for(lambda r: kinds(r) == ["watch_list", "list", "watch"])

    def test_a_server_that_answers_and_says_nothing_is_listed(self):
        server = self.serve(Scripted(stream(), answer(pod_list(7, [])), stream()))
        self.start(picture_idle_ms=50).until("synced")
        server.wait_for(lambda r: kinds(r) == ["watch_list", "list", "watch"])

    def test_what_is_gone_after_an_outage_is_gone_from_the_picture(self):
        self.serve(Scripted(
            stream(*WHOLE, error_event(410, "Expired"), end="end"), stream(event("ADDED", pod("b", 9)), bookmark(9, end=True))))
        probe = self.start()
        probe.until("synced")
        probe.until("synced")
        self.assertEqual(picture(probe.lines), {"default/b": "9"})

    def test_a_large_answer_may_come_compressed(self):
        pods = [pod(f"p{n}", n, annotations="x" * 3000) for n in range(200)]
        body = gzip.compress(json.dumps(pod_list(500, pods)).encode())

        def listing(request, connection):
            self.assertIn("gzip", request.headers["accept-encoding"])
            connection.answer(body=body, headers=["Content-Encoding: gzip"])

        self.serve(Scripted(listing, stream()))
        probe = self.start(no_watch_list=1)
        probe.until("synced")
        self.assertEqual(len(picture(probe.lines)), 200)


class Expired(Case):
    def test_410_to_a_watch_starts_a_new_picture(self):
        server = self.serve(Scripted(
            stream(*WHOLE, end="close"), status(410, "Expired"), stream(event("ADDED", pod("c", 30)), bookmark(30, end=True))))
        probe = self.start()
        probe.until("trouble expired")
        probe.until("synced")
        self.assertEqual(kinds(server.requests), ["watch_list", "watch", "watch_list"])
        self.assertEqual(picture(probe.lines), {"default/c": "30"})

    def test_410_in_the_stream_starts_a_new_picture(self):
        server = self.serve(Scripted(stream(*WHOLE, error_event(410, "Expired"), end="end"), stream(*WHOLE)))
        probe = self.start()
        line = probe.until("trouble expired")
        self.assertIn("too old resource version", line)
        probe.until("synced")
        self.assertEqual(kinds(server.requests), ["watch_list", "watch_list"])

    def test_410_in_the_stream_during_the_picture_starts_it_anew(self):
        server = self.serve(Scripted(
            stream(WHOLE[0], error_event(410, "Expired"), end="close"), stream(*WHOLE)))
        probe = self.start()
        probe.until("synced")
        self.assertEqual(kinds(server.requests), ["watch_list", "watch_list"])
        self.assertEqual(probe.lines.count("begin"), 2)

    def test_410_in_the_middle_of_a_list_starts_it_anew_with_larger_pages(self):
        server = self.serve(Scripted(
            answer(pod_list(7, [pod("a", 1)], token="one")), status(410, "Expired"),
            answer(pod_list(8, [pod("a", 1), pod("b", 2)])), stream()))
        probe = self.start(no_watch_list=1, page=1)
        probe.until("synced")
        self.assertEqual(kinds(server.requests)[:3], ["list", "more", "list"])
        self.assertEqual([r.query["limit"] for r in server.requests[:3]], ["1", "1", "2"])
        self.assertNotIn("continue", server.requests[2].query)
        self.assertEqual(picture(probe.lines), {"default/a": "1", "default/b": "2"})

    def test_other_errors_in_the_stream_keep_the_version(self):
        server = self.serve(Scripted(stream(*WHOLE, error_event(500, "InternalError"), end="end"), stream()))
        probe = self.start()
        probe.until("trouble server")
        server.wait_for(lambda r: len(r) == 2)
        self.assertEqual(server.requests[1].query["resourceVersion"], "2")

    def test_an_error_event_whose_object_comes_first_is_understood(self):
        parts = json.loads(error_event(410, "Expired"))
        swapped = json.dumps({"object": parts["object"], "type": "ERROR"}).encode()
        server = self.serve(Scripted(stream(*WHOLE, swapped, end="end"), stream(*WHOLE)))
        probe = self.start()
        probe.until("trouble expired")
        server.wait_for(lambda r: kinds(r) == ["watch_list", "watch_list"])

    def test_a_server_restored_from_a_backup_is_asked_for_a_new_picture(self):
        server = self.serve(Scripted(stream(*WHOLE, end="close"), *[status(500, "InternalError")] * 5, stream(*WHOLE)))
        probe = self.start(lived_ms=100000, stable_ms=100000)
        probe.until("synced")
        probe.until("synced")
        self.assertIn("watch_list", kinds(server.requests)[1:])


class Restored(Case):
    """A server that went back to a backup, with the ways in which servers take a version from the future."""

    WAS = (event("ADDED", pod("a", 900)), event("ADDED", pod("b", 901)), bookmark(901, end=True))
    NOW = stream(event("ADDED", pod("a", 400)), bookmark(401, end=True))

    def check(self, *watches, **arguments):
        asked = []

        def scenario(request, connection):
            asked.append(request.kind)
            if request.kind == "watch":
                self.assertEqual(request.query["resourceVersion"], "901")
                watches[asked.count("watch") - 1](request, connection)
            elif "watch" in asked:
                Restored.NOW(request, connection)
            else:
                stream(*self.WAS, end="end")(request, connection)
        self.serve(scenario)
        probe = self.start(**arguments)
        probe.until("synced")
        probe.until("synced")
        self.assertEqual(picture(probe.lines), {"default/a": "400"})
        self.assertEqual(asked, ["watch_list"] + ["watch"] * len(watches) + ["watch_list"])
        return probe

    def test_a_version_too_large_starts_a_new_picture(self):
        def refuse(_request, connection):
            connection.status(504, "Timeout", "Too large resource version: 901, current: 401")
        probe = self.check(refuse)
        self.assertTrue(any(line.startswith("trouble expired") for line in probe.lines), probe.lines)

    def test_the_same_said_in_the_stream(self):
        said = event("ERROR", {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Timeout",
                               "message": "Too large resource version: 901, current: 401", "code": 504})
        self.check(stream(said))

    def test_a_bookmark_that_goes_back_starts_a_new_picture(self):
        probe = self.check(stream(bookmark(402)))
        self.assertTrue(any("went back from 901 to 402" in line for line in probe.lines), probe.lines)

    def test_an_event_that_goes_back_is_not_taken_and_starts_a_new_picture(self):
        probe = self.check(stream(event("MODIFIED", pod("b", 403))))
        self.assertNotIn("MODIFIED default/b@403", " ".join(probe.lines))

    def test_one_that_says_nothing_is_asked_for_a_new_picture(self):
        self.check(stream(), stream(), watch_idle_ms=200)


class Overload(Case):
    def test_retry_after_is_kept(self):
        for code, phase in itertools.product((429, 503), ("watch_list", "watch", "list")):
            with self.subTest(code=code, phase=phase):
                refused = status(code, "TooManyRequests", headers=["Retry-After: 1"])
                steps = {"watch_list": [refused, stream(*WHOLE)],
                         "watch": [stream(*WHOLE, end="close"), refused, stream()],
                         "list": [refused, answer(pod_list(7, [])), stream()]}[phase]
                server = self.serve(Scripted(*steps))
                probe = self.start(**({"no_watch_list": 1} if phase == "list" else {}))
                line = probe.until("trouble throttled")
                wait = int(line.split(" ")[2])
                self.assertTrue(1000 <= wait <= 1200, line)
                first = kinds(server.requests).index(phase)
                server.wait_for(lambda r: len(r) > first + 1)
                self.assertGreaterEqual(server.requests[first + 1].at - server.requests[first].at, 1.0)

    def test_failures_are_never_a_tight_loop(self):
        """Whatever it is, without progress the waits grow: few requests in the time of many first waits."""
        steps = {"403": status(403, "Forbidden"), "404": status(404, "NotFound"), "500": status(500, "InternalError"),
                 "redirect": answer(b"", status=302, headers=["Location: /"]),
                 "html": answer(b"<html>", content_type="text/html"), "reset": lambda r, c: c.reset(),
                 "short watch": stream(end="end"), "empty answer": answer(b""), "garbage": answer(b"\0\1\2{"),
                 "not HTTP": lambda r, c: (c.send(b"SSH-2.0-x\r\n"), c.close())}
        for name, step in steps.items():
            with self.subTest(name):
                server = self.serve(Scripted(step))
                probe = self.start(backoff_first_ms=4, backoff_last_ms=64)
                for _ in range(8):
                    line = probe.until("trouble")
                waits = [int(line.split(" ")[2]) for line in probe.lines if line.startswith("trouble")]
                self.assertGreaterEqual(waits[-1], 32, waits)
                self.assertGreaterEqual(sum(waits), 100, waits)
                self.assertLessEqual(len(server.requests), 11)

    def test_one_event_before_every_cut_does_not_shorten_the_waits(self):
        versions = itertools.count(10)

        def one_event(request, connection):
            connection.start_stream()
            connection.chunk(b"".join(WHOLE) if request.kind == "watch_list" else event("MODIFIED", pod("a", next(versions))))
            connection.close()

        self.serve(one_event)
        probe = self.start(backoff_first_ms=4, backoff_last_ms=64, lived_ms=10000, stable_ms=10000)
        for _ in range(8):
            line = probe.until("trouble")
        self.assertGreaterEqual(int(line.split(" ")[2]), 32)

    def test_a_server_that_is_away_is_found_again(self):
        server = self.serve(Scripted(stream(*WHOLE)))
        port = server.port
        config = self.kubeconfig()
        server.close()
        probe = self.start(kubeconfig=config)
        self.assertIn("127.0.0.1:%d" % port, probe.until("trouble unreachable"))
        again = Server(Scripted(stream(*WHOLE)), port=port)
        self.addCleanup(again.close)
        probe.until("synced")


class Silence(Case):
    def test_a_half_open_connection_is_noticed_and_nothing_is_lost(self):
        server = self.serve(Scripted(stream(*WHOLE), stream(event("MODIFIED", pod("a", 3)))))
        probe = self.start(watch_idle_ms=100)
        line = probe.until("trouble timeout")
        self.assertIn("fell silent", line)
        probe.until("MODIFIED default/a@3")
        self.assertEqual(server.requests[1].query["resourceVersion"], "2")

    def test_a_request_that_is_never_answered_is_given_up(self):
        server = self.serve(Scripted(stay_unanswered, stream(*WHOLE)))
        probe = self.start(picture_idle_ms=100)
        probe.until("trouble timeout")
        probe.until("synced")
        self.assertEqual(kinds(server.requests), ["watch_list", "watch_list"])

    def test_a_list_that_drips_is_given_up(self):
        def drip(_request, connection):
            connection.start_stream()
            connection.chunk(b'{"metadata":{"resourceVersion":"')
            while True:
                connection.chunk(b"1")
                time.sleep(0.02)

        self.serve(Scripted(drip, answer(pod_list(7, [])), stream()))
        probe = self.start(no_watch_list=1, picture_idle_ms=200)
        probe.until("trouble timeout")
        probe.until("synced")

    def test_a_watch_that_drips_and_never_completes_an_event_is_given_up(self):
        def drip(_request, connection):
            connection.start_stream()
            connection.chunk(b"".join(WHOLE) + b'{"type":"ADDED","object":{"metadata":{"name":"')
            while True:
                connection.chunk(b"x")
                time.sleep(0.02)

        self.serve(Scripted(drip, stream(event("ADDED", pod("c", 9)))))
        probe = self.start(watch_idle_ms=200)
        probe.until("trouble timeout")
        probe.until("ADDED default/c@9")

    def test_bookmarks_keep_a_quiet_watch_open(self):
        def quiet(_request, connection):
            connection.start_stream()
            connection.chunk(b"".join(WHOLE))
            for n in range(3, 15):
                time.sleep(0.05)
                connection.chunk(bookmark(n))
            connection.chunk(event("ADDED", pod("z", 20)))
            connection.stay()

        server = self.serve(Scripted(quiet))
        probe = self.start(watch_idle_ms=300)
        probe.until("ADDED default/z@20")
        self.assertEqual(len(server.requests), 1)


class Hostile(Case):
    def objects(self, *parts, **arguments):
        self.serve(Scripted(stream(WHOLE[0], *parts, WHOLE[1], WHOLE[2])))
        probe = self.start(**arguments)
        probe.until("synced")
        self.assertEqual(picture(probe.lines), {"default/a": "1", "default/b": "2"})
        return probe

    def test_an_object_over_the_cap_is_named_and_left_out(self):
        big = event("ADDED", pod("big", 5, data="x" * 300000))
        pieces = [big[i:i + 10000] for i in range(0, len(big), 10000)]
        probe = self.objects(*pieces, object_max_bytes=100000)
        line = next(line for line in probe.lines if line.startswith("skipped"))
        self.assertTrue(line.startswith("skipped too-large default/big |"), line)
        self.assertEqual(probe.lines.count("abort"), 1)

    def test_its_version_counts_even_so(self):
        big = event("ADDED", pod("big", 5, data="x" * 300000))
        server = self.serve(Scripted(stream(*WHOLE, big, end="close"), stream()))
        probe = self.start(object_max_bytes=100000)
        probe.until("skipped")
        server.wait_for(lambda r: len(r) == 2)
        self.assertEqual(server.requests[1].query["resourceVersion"], "5")

    def test_in_a_list_too(self):
        pods = [pod("a", 1), pod("big", 5, data="x" * 300000), pod("b", 2)]
        self.serve(Scripted(answer(pod_list(7, pods)), stream()))
        probe = self.start(no_watch_list=1, object_max_bytes=100000)
        probe.until("synced")
        self.assertEqual(picture(probe.lines), {"default/a": "1", "default/b": "2"})

    def test_an_object_without_end_is_not_waited_for(self):
        def endless(_request, connection):
            connection.start_stream()
            connection.chunk(b"".join(WHOLE) + b'{"type":"ADDED","object":{"metadata":{"name":"n"},"x":"')
            while True:
                connection.chunk(b"x" * 65536)

        self.serve(Scripted(endless, stream(event("ADDED", pod("c", 9)))))
        probe = self.start(object_max_bytes=100000)
        line = probe.until("trouble protocol")
        self.assertIn("no end", line)
        probe.until("ADDED default/c@9")

    def test_objects_that_are_no_json_are_named_and_left_out(self):
        inner = (b'{"metadata":{"name":"x","namespace":"n"},"a":tru}', b'{"metadata":{"name":"x","namespace":"n"},"a":1,}',
                 b'{"metadata":{"name":"x","namespace":"n"},"a":"\xff\xfe"}', b'{"metadata":{"name":"x","namespace":"n"}]')
        for obj in inner:
            with self.subTest(obj):
                probe = self.objects(b'{"type":"ADDED","object":' + obj + b"}\n")
                line = next(line for line in probe.lines if line.startswith("skipped"))
                self.assertTrue(line.startswith("skipped refused n/x |"), line)

    def test_events_that_are_none_are_left_out(self):
        for part in (b'{"type":"RENAMED","object":{"metadata":{"name":"x"}}}\n', b"{}\n", b'{"type":"ADDED"}\n',
                     b'{"type":"ADDED","object":null}\n', b'{"type":"ADDED","object":"x"}\n', b'{"type":7,"object":[]}\n',
                     b'{"type":"ADDED","object":{"metadata":{"name":"x\n'):
            with self.subTest(part):
                probe = self.objects(part)
                self.assertIn("malformed", next(line for line in probe.lines if line.startswith("skipped")))

    def test_blank_lines_between_events_are_nothing(self):
        self.objects(b"\n\n \r\n")

    def test_deep_objects_are_the_readers_business(self):
        deep = b"[" * 100000 + b"]" * 100000
        self.serve(Scripted(stream(
            WHOLE[0], b'{"type":"ADDED","object":{"metadata":{"name":"deep"},"x":' + deep + b"}}\n", *WHOLE[1:])))
        probe = self.start()
        probe.until("synced")
        self.assertEqual(picture(probe.lines).keys(), {"default/a", "/deep", "default/b"})

    def test_a_delete_of_what_was_never_there_is_passed_on(self):
        self.objects(event("DELETED", pod("ghost", 9)))

    def test_html_from_a_proxy_is_told_from_an_answer(self):
        page = b"<html><body>Please log in</body></html>"
        for step in (answer(page, content_type="text/html"), answer(page, status=502, content_type="text/html"),
                     answer(page), answer(page, content_type="text/html", status=203)):
            self.serve(Scripted(step, stream(*WHOLE)))
            probe = self.start()
            probe.until("trouble")
            probe.until("synced")

    def test_a_list_that_is_none_is_not_an_empty_picture(self):
        for body in ({}, {"kind": "PodList", "items": []}, {"metadata": {"resourceVersion": ""}, "items": []}, [], "x"):
            with self.subTest(body):
                self.serve(Scripted(
                    answer(json.dumps(body).encode()), answer(pod_list(7, [pod("a", 1)])), stream()))
                probe = self.start(no_watch_list=1)
                probe.until("trouble protocol")
                probe.until("synced")
                self.assertEqual(probe.lines.count("synced"), 1)

    def test_endless_pages_are_bounded_by_their_token(self):
        def pages(_request, connection):
            connection.answer(body=pod_list(7, [pod("a", 1)], token="x" * 5000))

        self.serve(pages)
        line = self.start(no_watch_list=1).until("trouble protocol")
        self.assertIn("continue token", line)


class Life(Case):
    def test_a_watch_that_ends_in_order_goes_on_from_the_last_bookmark(self):
        def in_order(_request, connection):
            connection.start_stream()
            connection.chunk(b"".join(WHOLE))
            time.sleep(0.02)
            connection.chunk(bookmark(44))
            connection.end_stream()

        server = self.serve(Scripted(in_order, stream()))
        probe = self.start()
        probe.until("connected")
        probe.until("connected")
        self.assertEqual(server.requests[1].query["resourceVersion"], "44")
        self.assertEqual(server.connections, 1, "the connection is kept")
        self.assertFalse([line for line in probe.lines if line.startswith("trouble")])

    def test_after_stop_nothing_comes_and_calls_still_work(self):
        server = self.serve(lambda r, c: stream(*WHOLE)(r, c) if r.kind == "watch_list" else c.answer(body={"a": 1}))
        probe = self.start()
        probe.until("synced")
        probe.say("stop")
        probe.say("call GET /version")
        self.assertTrue(probe.until("answer").startswith("answer 200 0 0 8 - |"))
        self.assertEqual(len(server.requests), 2)

    def test_ends_in_order_at_any_moment(self):
        for step in (stream(*WHOLE), stream(WHOLE[0][:40]), stay_unanswered, status(500)):
            self.serve(Scripted(step))
            probe = self.start()
            self.server.wait_for(lambda r: r)
            probe.process.stdin.close()
            self.assertEqual(probe.process.wait(60), 0)

    def test_starts_are_spread(self):
        server = self.serve(Scripted(stream(*WHOLE)))
        probe = self.start(start_spread_ms=300)
        probe.until("synced")
        self.assertEqual(len(server.requests), 1)

    def test_statistics_tell_what_happened(self):
        self.serve(Scripted(stream(*WHOLE, event("MODIFIED", pod("a", 3)), bookmark(4))))
        probe = self.start()
        probe.until("MODIFIED")
        while True:
            probe.say("stats")
            line = probe.until("stats")
            if "bookmarks=2" in line:
                break
        self.assertIn("pictures=1 syncs=1 lists=0 watches=1 events=3 bookmarks=2 synced=1 connected=1", line)


if __name__ == "__main__":
    unittest.main()
