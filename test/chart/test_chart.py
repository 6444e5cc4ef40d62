# SPDX-License-Identifier: Apache-2.0
"""What the chart renders, looked at object by object. Run by ./run, which sets HELM."""

import copy
import functools
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

CHART = pathlib.Path(__file__).resolve().parents[2] / "helm/pernode"
HELM = os.environ.get("HELM", "helm")
NAMESPACE = "sizing"                    # not the default one: nothing may be hard-wired to it


def helm(*words):
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "HELM_CACHE_HOME": home, "HELM_CONFIG_HOME": home,
                       "HELM_DATA_HOME": home}
        return subprocess.run([HELM, *words], capture_output=True, text=True, env=environment, timeout=120)


def template(values=None, *words, kube_version="1.35.0"):
    """Runs helm template; values as a dictionary. The finished process."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values or {}, file)
        file.flush()
        return helm("template", "pernode", str(CHART), "--namespace", NAMESPACE, "--kube-version", kube_version,
                    "--values", file.name, *words)


class UniqueKeys(yaml.SafeLoader):
    """A key that is given twice is an error, as it is for the API server's strict decoding."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.YAMLError(f"keys given twice: {twice}")
        return super().construct_mapping(node, deep)


@functools.lru_cache(maxsize=None)
def rendered(values_json, *words):
    done = template(json.loads(values_json), *words)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


def render(values=None, *words):
    """The objects, fresh for each caller."""
    return [item for item in yaml.load_all(rendered(json.dumps(values or {}, sort_keys=True), *words), UniqueKeys) if item]


def installed(objects):
    """Without the hooks: what stays in the cluster."""
    return [item for item in objects if "helm.sh/hook" not in item["metadata"].get("annotations", {})]


def one(objects, kind, name=None):
    found = [item for item in objects if item["kind"] == kind and name in (None, item["metadata"]["name"])]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects of kind {kind} named {name}")
    return found[0]


def pod_specs(objects):
    for item in objects:
        if item["kind"] == "Pod":
            yield item["spec"]
        elif "template" in item.get("spec", {}):
            yield item["spec"]["template"]["spec"]


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def agent(objects):
    """The agent's container."""
    return one(objects, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]


def merge(*parts):
    out = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, dict) and isinstance(out.get(key), dict):
                out[key] = merge(out[key], value)
            else:
                out[key] = copy.deepcopy(value)
    return out


# Each switch in both positions: every combination is rendered.
SWITCHES = [
    [{}, {"admissionPolicy": {"enabled": False}}],
    [{}, {"networkPolicy": {"enabled": False}},
     {"networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}], "apiServerPorts": [6443]}}],
    [{}, {"flowSchema": {"enabled": True}}, {"uninstall": {"removeAnnotations": False}}],
    [{}, {"podMonitor": {"enabled": True, "labels": {"release": "p"}}}],
    [{}, {"agent": {"publish": False, "priorityClassName": "system-node-critical", "nodeSelector": {"pool": "a"},
                    "tolerations": [], "podLabels": {"team": "a"}, "podAnnotations": {"a/b": "c"},
                    "imagePullSecrets": [{"name": "registry"}], "stateDirectory": "/opt/x/pernode", "port": 19870,
                    "image": {"repository": "r.example/p", "digest": "sha256:" + "a" * 64},
                    "updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}],
]
COMBINATIONS = [merge(*choice) for choice in itertools.product(*SWITCHES)]


class Lint(unittest.TestCase):
    def test_helm_lint_is_content(self):
        done = helm("lint", "--strict", str(CHART))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_combination_of_switches_renders_whole_objects(self):
        for values in COMBINATIONS:
            with self.subTest(values=values):
                for item in render(values):
                    self.assertTrue(item["apiVersion"] and item["kind"] and item["metadata"]["name"])

    def test_versions_of_kubernetes_without_the_policy_are_refused(self):
        done = template(kube_version="1.29.9")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("kubeVersion", done.stderr)

    def test_oldest_accepted_kubernetes(self):
        self.assertEqual(template(kube_version="1.30.0-gke.100").returncode, 0)

    def test_chart_and_program_have_one_version(self):
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        program = re.search(r"project\(pernode VERSION (\S+)", (CHART.parents[1] / "CMakeLists.txt").read_text())
        self.assertEqual({chart["version"], chart["appVersion"]}, {program[1]})


class Names(unittest.TestCase):
    def test_kinds_and_names_of_the_default_install(self):
        found = sorted((item["kind"], item["metadata"]["name"]) for item in installed(render()))
        self.assertEqual(found, [
            ("ClusterRole", "pernode-agent"), ("ClusterRoleBinding", "pernode-agent"), ("DaemonSet", "pernode-agent"),
            ("NetworkPolicy", "pernode-agent"), ("ServiceAccount", "pernode-agent"),
            ("ValidatingAdmissionPolicy", "pernode-agent-own-node"),
            ("ValidatingAdmissionPolicyBinding", "pernode-agent-own-node")])

    def test_namespaced_objects_are_in_the_release_namespace(self):
        cluster_wide = {"ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
                        "FlowSchema", "PriorityLevelConfiguration"}
        for values in COMBINATIONS:
            for item in render(values):
                with self.subTest(kind=item["kind"]):
                    expected = None if item["kind"] in cluster_wide else NAMESPACE
                    self.assertEqual(item["metadata"].get("namespace"), expected)

    def test_account_is_the_same_everywhere(self):
        objects = render({"flowSchema": {"enabled": True}})
        account = {"kind": "ServiceAccount", "name": "pernode-agent", "namespace": NAMESPACE}
        self.assertEqual(one(objects, "ClusterRoleBinding", "pernode-agent")["subjects"], [account])
        subject = one(objects, "FlowSchema")["spec"]["rules"][0]["subjects"][0]
        self.assertEqual(subject["serviceAccount"], {"name": "pernode-agent", "namespace": NAMESPACE})
        condition = one(objects, "ValidatingAdmissionPolicy")["spec"]["matchConditions"][0]["expression"]
        self.assertIn(f"'system:serviceaccount:{NAMESPACE}:pernode-agent'", condition)
        for pod in pod_specs([*installed(objects), one(objects, "Pod")]):
            self.assertEqual(pod["serviceAccountName"], "pernode-agent")

    def test_selectors_match_the_pods_and_not_the_test_pod(self):
        for values in COMBINATIONS:
            objects = render(values)
            daemonset = one(objects, "DaemonSet")
            labels = daemonset["spec"]["template"]["metadata"]["labels"]
            test_labels = one(objects, "Pod")["metadata"]["labels"]
            selectors = [daemonset["spec"]["selector"]["matchLabels"]]
            selectors += [item["spec"]["podSelector"]["matchLabels"] for item in objects if item["kind"] == "NetworkPolicy"]
            selectors += [item["spec"]["selector"]["matchLabels"] for item in objects if item["kind"] == "PodMonitor"]
            for selector in selectors:
                self.assertLessEqual(selector.items(), labels.items())
                self.assertFalse(selector.items() <= test_labels.items())


class Security(unittest.TestCase):
    def test_every_container_of_every_combination_is_locked_down(self):
        for values in COMBINATIONS:
            for pod in pod_specs(render(values)):
                whole = pod["securityContext"]
                self.assertEqual((whole["runAsNonRoot"], whole["runAsUser"], whole["runAsGroup"]), (True, 65532, 65532))
                self.assertEqual(whole["seccompProfile"], {"type": "RuntimeDefault"})
                for name in ("hostPID", "hostNetwork", "hostIPC", "hostUsers", "shareProcessNamespace"):
                    self.assertNotIn(name, pod)
                self.assertIs(pod["enableServiceLinks"], False)
                for container in containers(pod):
                    with self.subTest(container=container["name"]):
                        own = container["securityContext"]
                        self.assertIs(own["allowPrivilegeEscalation"], False)
                        self.assertIs(own["privileged"], False)
                        self.assertIs(own["readOnlyRootFilesystem"], True)
                        self.assertEqual(own["capabilities"], {"drop": ["ALL"]})
                        self.assertNotIn("seccompProfile", own)
                        self.assertIn("memory", container["resources"]["limits"])

    def test_only_the_init_container_is_root_and_it_gets_the_state_directory_only(self):
        for values in COMBINATIONS:
            for pod in pod_specs(render(values)):
                for container in containers(pod):
                    own = container["securityContext"]
                    if container["name"] != "prepare-state":
                        self.assertFalse({"runAsUser", "runAsGroup", "runAsNonRoot"} & set(own), container["name"])
                        continue
                    self.assertEqual((own["runAsUser"], own["runAsGroup"], own["runAsNonRoot"]), (0, 65532, False))
                    self.assertEqual([m["name"] for m in container["volumeMounts"]], ["state"])

    def test_host_paths_are_cgroup_read_only_at_its_own_path_and_state(self):
        for values in COMBINATIONS:
            state = values.get("agent", {}).get("stateDirectory", "/var/lib/pernode")
            objects = render(values)
            for pod in pod_specs([*installed(objects), one(objects, "Pod")]):
                self.assertEqual({v["name"]: v["hostPath"] for v in pod["volumes"]},
                                 {"cgroup": {"path": "/sys/fs/cgroup", "type": "Directory"},
                                  "state": {"path": state, "type": "DirectoryOrCreate"}})
                mounts = {m["name"]: m for m in pod["containers"][0]["volumeMounts"]}
                self.assertEqual(mounts["cgroup"], {"name": "cgroup", "mountPath": "/sys/fs/cgroup", "readOnly": True})
                self.assertEqual(mounts["state"]["mountPath"], state)

    def test_rights_are_these_and_no_others(self):
        objects = render({"flowSchema": {"enabled": True}, "podMonitor": {"enabled": True}})
        roles = [item for item in objects if item["kind"] in ("ClusterRole", "Role")]
        self.assertEqual({role["metadata"]["name"] for role in roles}, {"pernode-agent", "pernode-uninstall"})
        self.assertEqual(one(objects, "ClusterRole", "pernode-uninstall")["rules"], [
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch", "patch"]}])
        self.assertEqual(one(objects, "ClusterRole", "pernode-agent")["rules"], [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
                                 {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}])

    def test_each_right_has_its_reason(self):
        for name in ("rbac.yaml", "uninstall.yaml"):
            lines = (CHART / "templates/agent" / name).read_text().splitlines()
            for number, line in enumerate(lines):
                if line.startswith("- apiGroups"):
                    self.assertTrue(lines[number - 1].startswith("# "), f"{name}, line {number + 1}")

    def test_policy_denies_and_fails_closed(self):
        objects = render()
        policy = one(objects, "ValidatingAdmissionPolicy")["spec"]
        binding = one(objects, "ValidatingAdmissionPolicyBinding")["spec"]
        self.assertEqual(policy["failurePolicy"], "Fail")
        self.assertEqual(binding, {"policyName": "pernode-agent-own-node", "validationActions": ["Deny"]})
        rule = policy["matchConstraints"]["resourceRules"][0]
        self.assertLessEqual({"nodes", "nodes/*"}, set(rule["resources"]))
        self.assertIn("UPDATE", rule["operations"])
        for validation in policy["validations"]:
            self.assertTrue(validation.get("message") or validation.get("messageExpression"))
            self.assertEqual(validation["reason"], "Forbidden")     # 403, as for every other right that is missing

    def test_leaving_the_policy_out_is_said_aloud(self):
        with_policy, without = (helm("install", "pernode", str(CHART), "--dry-run=client", "--namespace", NAMESPACE, *words)
                                for words in ([], ["--set", "admissionPolicy.enabled=false"]))
        self.assertEqual(without.returncode, 0, without.stderr)
        self.assertIn("WARNING: admissionPolicy.enabled=false", without.stdout)
        self.assertNotIn("WARNING", with_policy.stdout)

    def test_account_hands_out_its_token_only_when_asked(self):
        objects = render()
        for name in ("pernode-agent", "pernode-uninstall"):
            self.assertIs(one(objects, "ServiceAccount", name)["automountServiceAccountToken"], False)
        self.assertTrue(all(pod["automountServiceAccountToken"] for pod in pod_specs(objects)))

    def test_network_policy_covers_both_directions(self):
        spec = one(render({"networkPolicy": {"apiServerPorts": [6443]}}), "NetworkPolicy")["spec"]
        self.assertEqual(spec["policyTypes"], ["Ingress", "Egress"])
        self.assertEqual(spec["ingress"], [{"ports": [{"port": 9870, "protocol": "TCP"}]}])
        self.assertEqual(spec["egress"], [{"ports": [{"port": 6443, "protocol": "TCP"}]}])


class Agent(unittest.TestCase):
    def test_runs_on_every_linux_node_that_has_cgroups(self):
        pod = next(pod_specs([one(render(), "DaemonSet")]))
        self.assertEqual(pod["tolerations"], [{"operator": "Exists"}])
        terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        self.assertEqual(len(terms), 1)
        self.assertIn({"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}, terms[0]["matchExpressions"])

    def test_default_arguments(self):
        self.assertEqual(agent(render())["args"], ["run", "--cgroup-root=/sys/fs/cgroup", "--state-dir=/var/lib/pernode",
                                                    "--listen=:9870", "--publish=api"])

    def test_flags_print_as_the_program_reads_them(self):
        config = {"interval": "1s", "target-cpu-percentile": 0.95, "oom-min-bump-up-bytes": 16777216, "ahead-of-oom": False,
                  "container-min-memory": "10Mi", "confidence-interval-cpu": "1h30m", "oom-bump-up-ratio": 1,
                  "round-memory-bytes": 1099511627776, "recommendation-margin-fraction": 0.0000001}
        self.assertEqual(agent(render({"agent": {"config": config}}))["args"][5:], [
            "--ahead-of-oom=false", "--confidence-interval-cpu=1h30m", "--container-min-memory=10Mi", "--interval=1s",
            "--oom-bump-up-ratio=1", "--oom-min-bump-up-bytes=16777216", "--recommendation-margin-fraction=1e-07",
            "--round-memory-bytes=1099511627776", "--target-cpu-percentile=0.95"])

    def test_flags_from_the_command_line_print_the_same(self):
        objects = render(None, "--set", "agent.config.oom-min-bump-up-bytes=16777216,agent.config.target-cpu-percentile=0.5")
        self.assertEqual(agent(objects)["args"][5:], ["--oom-min-bump-up-bytes=16777216", "--target-cpu-percentile=0.5"])

    def test_dry_run_publishes_nothing(self):
        self.assertIn("--publish=none", agent(render({"agent": {"publish": False}}))["args"])

    def test_node_name_comes_from_the_downward_api(self):
        self.assertEqual(agent(render())["env"], [{"name": "PERNODE_NODE_NAME",
                                                    "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}])

    def test_probes_ask_the_port_that_is_served(self):
        container = agent(render({"agent": {"port": 12345}}))
        self.assertIn("--listen=:12345", container["args"])
        self.assertEqual(container["ports"], [{"name": "http", "containerPort": 12345, "protocol": "TCP"}])
        for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
            self.assertEqual(container[probe]["httpGet"], {"path": path, "port": "http"})

    def test_digest_wins_over_tag_and_tag_defaults_to_the_version(self):
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        digest = "sha256:" + "0" * 64
        for image, expected in (({}, f"localhost/pernode-agent:{chart['appVersion']}"),
                                ({"repository": "r.example:5000/a/b", "tag": "x"}, "r.example:5000/a/b:x"),
                                ({"repository": "r.example/b", "tag": "x", "digest": digest}, f"r.example/b@{digest}")):
            for pod in pod_specs(render({"agent": {"image": image}})):
                self.assertEqual({c["image"] for c in containers(pod)}, {expected})

    def test_state_directory_is_one_value(self):
        objects = render({"agent": {"stateDirectory": "/opt/data/pernode-state"}})
        for pod in pod_specs([*installed(objects), one(objects, "Pod")]):
            for container in containers(pod):
                self.assertIn("--state-dir=/opt/data/pernode-state", container["args"])


class Uninstall(unittest.TestCase):
    def test_hook_and_its_account_leave_nothing_behind(self):
        hooks = [item for item in render() if item["metadata"].get("annotations", {}).get("helm.sh/hook") == "post-delete"]
        self.assertEqual(sorted(item["kind"] for item in hooks),
                         ["ClusterRole", "ClusterRoleBinding", "Job", "ServiceAccount"])
        for item in hooks:
            policy = item["metadata"]["annotations"]["helm.sh/hook-delete-policy"].split(",")
            self.assertEqual(set(policy), {"before-hook-creation", "hook-succeeded", "hook-failed"}, item["kind"])
        weights = {item["kind"]: int(item["metadata"]["annotations"]["helm.sh/hook-weight"]) for item in hooks}
        self.assertGreater(weights["Job"], max(weight for kind, weight in weights.items() if kind != "Job"))

    def test_hook_can_be_left_out(self):
        self.assertFalse([item for item in render({"uninstall": {"removeAnnotations": False}})
                          if item["metadata"]["name"] == "pernode-uninstall"])

    def test_hook_gets_no_volume_of_the_host(self):
        job = one(render(), "Job")["spec"]["template"]["spec"]
        self.assertNotIn("volumes", job)
        self.assertEqual(job["containers"][0]["args"], ["remove-annotations"])


class Schema(unittest.TestCase):
    REFUSED = [
        ({"agnet": {}}, "agnet"),
        ({"agent": {"imgae": {}}}, "imgae"),
        ({"agent": {"image": {"repo": "x"}}}, "repo"),
        ({"agent": {"image": {"digest": "sha256:beef"}}}, "digest"),
        ({"agent": {"image": {"tag": "a b"}}}, "tag"),
        ({"agent": {"image": {"pullPolicy": "Sometimes"}}}, "pullPolicy"),
        ({"agent": {"config": {"intreval": "10s"}}}, "intreval"),
        ({"agent": {"config": {"interval": "10 s"}}}, "interval"),
        ({"agent": {"config": {"interval": 10}}}, "interval"),
        ({"agent": {"config": {"target-cpu-percentile": 90}}}, "target-cpu-percentile"),
        ({"agent": {"config": {"target-cpu-percentile": "1.5"}}}, "target-cpu-percentile"),
        ({"agent": {"config": {"profile": "coarse"}}}, "profile"),
        ({"agent": {"config": {"ahead-of-oom": "yes"}}}, "ahead-of-oom"),
        ({"agent": {"config": {"container-min-memory": "10MB"}}}, "container-min-memory"),
        ({"agent": {"config": {"oom-bump-up-ratio": 0.5}}}, "oom-bump-up-ratio"),
        # Where the chart decides, a second value would contradict it.
        ({"agent": {"config": {"state-dir": "/x"}}}, "state-dir"),
        ({"agent": {"config": {"publish": "none"}}}, "publish"),
        ({"agent": {"config": {"listen": ":1"}}}, "listen"),
        ({"agent": {"publish": "api"}}, "publish"),
        ({"agent": {"port": 80}}, "port"),
        ({"agent": {"port": "9870"}}, "port"),
        ({"agent": {"resources": {"limits": {"memory": "lots"}}}}, "memory"),
        ({"agent": {"resources": {"requests": {"cpu": True}}}}, "cpu"),
        # It is handed over to the agent's group: never a directory that is someone else's.
        ({"agent": {"stateDirectory": "/var/lib"}}, "stateDirectory"),
        ({"agent": {"stateDirectory": "/var/lib/kubelet"}}, "stateDirectory"),
        ({"agent": {"stateDirectory": "var/lib/pernode"}}, "stateDirectory"),
        ({"agent": {"stateDirectory": "/pernode"}}, "stateDirectory"),
        ({"agent": {"stateDirectory": "/var/../pernode"}}, "stateDirectory"),
        ({"agent": {"tolerations": [{"operator": "Maybe"}]}}, "tolerations"),
        ({"agent": {"tolerations": {}}}, "tolerations"),
        ({"agent": {"updateStrategy": {"type": "Recreate"}}}, "updateStrategy"),
        ({"agent": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "half"}}}}, "maxUnavailable"),
        ({"agent": {"podLabels": {"a": 1}}}, "podLabels"),
        ({"agent": {"imagePullSecrets": ["registry"]}}, "imagePullSecrets"),
        ({"agent": {"terminationGracePeriodSeconds": 0}}, "terminationGracePeriodSeconds"),
        ({"admissionPolicy": {"enabled": "false"}}, "enabled"),
        ({"admissionPolicy": {"enable": True}}, "enable"),
        ({"networkPolicy": {"apiServerPorts": []}}, "apiServerPorts"),
        ({"networkPolicy": {"apiServerPorts": [0]}}, "apiServerPorts"),
        ({"networkPolicy": {"from": [{"podselector": {}}]}}, "podselector"),
        ({"flowSchema": {"concurrencyShares": -1}}, "concurrencyShares"),
        ({"podMonitor": {"interval": "often"}}, "interval"),
    ]

    def test_mistakes_are_refused_and_named(self):
        for values, word in self.REFUSED:
            with self.subTest(values=values):
                done = template(values)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(word, done.stderr)

    def test_schema_is_closed_everywhere(self):
        """Every object of the schema either refuses unknown keys, or says what its values are, or is Kubernetes' own."""
        def walk(node, path):
            if isinstance(node, dict):
                if node.get("type") == "object" and path[-1] not in ("global", "podSelector", "namespaceSelector", "ipBlock"):
                    self.assertIn("additionalProperties", node, "/".join(path))
                    self.assertIsNot(node["additionalProperties"], True, "/".join(path))
                for key, value in node.items():
                    walk(value, (*path, key))
            elif isinstance(node, list):
                for value in node:
                    walk(value, path)
        walk(json.loads((CHART / "values.schema.json").read_text()), ("",))

    def test_schema_says_each_thing_once(self):
        def pairs(found):
            keys = [key for key, _ in found]
            self.assertEqual(sorted(keys), sorted(set(keys)))
            return dict(found)
        json.loads((CHART / "values.schema.json").read_text(), object_pairs_hook=pairs)

    def test_every_value_is_in_the_schema_and_the_other_way_round(self):
        values = yaml.safe_load((CHART / "values.yaml").read_text())
        schema = json.loads((CHART / "values.schema.json").read_text())

        def compare(value, part, path):
            properties = part.get("properties")
            if not isinstance(value, dict) or properties is None or path == "agent.config":
                return
            known = set(properties) - {"global"} if not path else set(properties)
            optional = {"maxSurge"}
            self.assertEqual(set(value) | (known & optional), known, path)
            for key in value:
                compare(value[key], properties[key], f"{path}.{key}".lstrip("."))
        compare(values, schema, "")

    def test_every_value_is_explained(self):
        """Each block of values.yaml follows a comment, unless its own keys are explained one by one or its name says it all."""
        plain = {"pullPolicy", "resources", "requests", "limits", "type", "rollingUpdate", "updateStrategy", "podAnnotations",
                 "podLabels", "enabled", "agent", "image", "networkPolicy", "uninstall", "labels", "interval", "operator", "nodeSelector",
                 "tolerations"}
        lines = (CHART / "values.yaml").read_text().splitlines()
        for number, line in enumerate(lines):
            key = re.match(r"\s*([A-Za-z]+):", line)
            if key and key[1] not in plain:
                self.assertTrue(lines[number - 1].lstrip().startswith("#"), f"{key[1]}, line {number + 1}")


class Counting(unittest.TextTestResult):
    """Each sub-test counts: a table of forty refusals is forty tests."""
    passed = failed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addSubTest(self, test, subtest, outcome):
        super().addSubTest(test, subtest, outcome)
        self.passed += outcome is None

    def stopTestRun(self):
        self.failed = len(self.failures) + len(self.errors) + len(self.unexpectedSuccesses)
        super().stopTestRun()


if __name__ == "__main__":
    result = unittest.main(exit=False, testRunner=unittest.TextTestRunner(resultclass=Counting, verbosity=2)).result
    print(f"{result.passed} passed, {result.failed} failed", flush=True)
    sys.exit(1 if result.failed or not result.passed else 0)
