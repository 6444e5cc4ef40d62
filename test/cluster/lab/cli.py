# SPDX-License-Identifier: Apache-2.0
"""The command line: verbs to functions. Exit 0 done, 1 it failed (stderr says why), 2 usage."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from lib import uml

from . import build, images, nodespec, report, wait, workload
from .cluster import NODE_LOGS, Cluster
from .controlplane import PART_NAMES
from .errors import LabError

DESCRIPTION = """A real Kubernetes on this machine: etcd, API server, controller manager and scheduler
as processes, and nodes that are User Mode Linux kernels with kubelet, containerd and runc.

  cluster build                      once, about 10 minutes
  cluster up                         three Ready nodes within a minute
  cluster kubectl get nodes
  cluster node kill b                pull b's plug
  cluster down                       nothing is left behind"""


def _seconds(text: str) -> float:
    number = text.removesuffix("s")
    try:
        return float(number)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text}: not a number of seconds") from error


def cmd_build(_cluster: Cluster, _options: argparse.Namespace) -> int:
    """Builds the Kubernetes programs into the cache folder, once per version."""
    report.say(f"built: {build.build()}")
    return 0


def cmd_up(cluster: Cluster, options: argparse.Namespace) -> int:
    """Brings the cluster up, or what is missing of it."""
    if not build.is_built():
        build.build()
    defaults = {"memory_bytes": nodespec.parse_size(options.memory, "--memory"),
                "runtime": options.runtime}
    if options.node:
        fleet = [nodespec.parse(text, **defaults) for text in options.node]
        if len({spec.name for spec in fleet}) != len(fleet):
            raise LabError("--node: the same name twice")
        cluster.up(fleet)
    else:
        cluster.up(options.nodes, **defaults)
    return 0


def cmd_down(cluster: Cluster, _options: argparse.Namespace) -> int:
    """Ends the cluster and removes all that it left."""
    cluster.down()
    return 0


def cmd_status(cluster: Cluster, options: argparse.Namespace) -> int:
    """Shows what runs; exit 1 when the cluster is not wholly well."""
    status = cluster.status()
    well = status["healthy"] and all(node["ready"] for node in status["nodes"]) and \
        set(status["parts"].values()) == {"running"}
    if options.output == "json":
        print(json.dumps(status, indent=2))
        return 0 if well else 1
    print(f"cluster {status['name']}: {'up' if status['up'] else 'down'}")
    for name, state in status["parts"].items():
        print(f"  {name:<20} {state}")
    for node in status["nodes"]:
        words = [node["state"], "Ready" if node["ready"] else "not Ready",
                 f"{node['memory_bytes'] >> 20} MiB", node["ip"]]
        if node["partitioned"]:
            words.append("partitioned")
        print(f"  {node['kubeName']:<20} {', '.join(words)}")
    return 0 if well else 1


def _become(cluster: Cluster, command: list[str]) -> int:
    os.execvpe(command[0], command, cluster.kube.environment())


def cmd_kubectl(cluster: Cluster, options: argparse.Namespace) -> int:
    """The real kubectl."""
    return _become(cluster, cluster.kube.command("kubectl", options.arguments))


def cmd_helm(cluster: Cluster, options: argparse.Namespace) -> int:
    """The real helm."""
    return _become(cluster, cluster.kube.command("helm", options.arguments))


def cmd_exec(cluster: Cluster, options: argparse.Namespace) -> int:
    """A command of this machine inside the cluster's network."""
    arguments = options.arguments[1:] if options.arguments[:1] == ["--"] else options.arguments
    if not arguments:
        raise LabError("exec: no command; cluster exec -- curl http://POD:PORT/")
    return _become(cluster, [*cluster.network.prefix(), *arguments])


def cmd_logs(cluster: Cluster, options: argparse.Namespace) -> int:
    """Prints a part's log."""
    path = cluster.log_path(options.part)
    if not path.exists():
        raise LabError(f"{path}: nothing was logged yet")
    follow = ["--follow"] if options.follow else []
    return subprocess.run(["tail", f"--lines={options.tail}", *follow, path], check=False).returncode


def cmd_shell(cluster: Cluster, options: argparse.Namespace) -> int:
    """A shell, or a command, in a node."""
    arguments = options.arguments[1:] if options.arguments[:1] == ["--"] else options.arguments
    return cluster.node(options.name).call(arguments or ["/bin/sh", "-i"])


def cmd_load_image(cluster: Cluster, options: argparse.Namespace) -> int:
    """Loads image archives into every node."""
    for archive in options.archives:
        for tag in cluster.load_image(archive):
            print(tag)
    return 0


def cmd_build_image(_cluster: Cluster, options: argparse.Namespace) -> int:
    """Makes an image archive from static binaries."""
    files = {}
    for text in options.files:
        source, colon, target = text.partition(":")
        files[target if colon else f"/{Path(source).name}"] = Path(source)
    entrypoint = options.entrypoint or [next(iter(files))]
    print(images.build_image(options.archive, options.tag, files, entrypoint=entrypoint,
                             user=options.user))
    return 0


def cmd_instruct(cluster: Cluster, options: argparse.Namespace) -> int:
    """Tells a pod of the workload image what to do from now on."""
    pod = cluster.kube.get("pod", options.pod, namespace=options.namespace)
    print(json.dumps(workload.instruct(cluster, pod, " ".join(options.instruction))))
    return 0


def cmd_part(cluster: Cluster, options: argparse.Namespace) -> int:
    """kill, hang, resume, start, restart of one part of the control plane."""
    cluster.part(options.verb, options.action)
    return 0


def cmd_node(cluster: Cluster, options: argparse.Namespace) -> int:
    """kill, hang, resume, start, reboot, delete of a node."""
    node = cluster.node(options.name)
    if options.wipe and options.action not in ("kill", "reboot", "delete"):
        raise LabError(f"node {options.action}: --wipe goes with kill, reboot and delete")
    extra = {"wipe": True} if options.wipe else {}
    getattr(node, options.action)(**extra)
    return 0


def cmd_partition(cluster: Cluster, options: argparse.Namespace) -> int:
    """Cuts a node off."""
    cluster.node(options.name).partition()
    return 0


def cmd_heal(cluster: Cluster, options: argparse.Namespace) -> int:
    """Ends a partition."""
    cluster.node(options.name).heal()
    return 0


def cmd_clock(cluster: Cluster, options: argparse.Namespace) -> int:
    """Moves a node's wall clock."""
    cluster.node(options.name).shift_clock(options.seconds)
    return 0


def cmd_wait(cluster: Cluster, options: argparse.Namespace) -> int:
    """Waits for a condition of an object, or a line in a file."""
    if options.file:
        print(wait.until_file(Path(options.file), options.condition, options.timeout))
        return 0
    if not options.object:
        raise LabError("wait: which object? such as: wait pod/web '{.status.phase}==Running'")
    where = ["-n", options.namespace] if options.namespace else []
    target = [*options.object.split("/", 1), *where]
    cluster.wait(lambda: wait.check(cluster.kube, target, options.condition),
                 f"{options.object} has {options.condition}", options.timeout, options.namespace,
                 tuple(target))
    return 0


def _add_rest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("arguments", nargs=argparse.REMAINDER)


def _add_running(verbs) -> None:
    up = verbs.add_parser("up", help=cmd_up.__doc__)
    up.add_argument("--nodes", type=int, default=3, help="how many equal ones, a, b, c, … (3)")
    up.add_argument("--memory", default="800M", help="memory of each (800M)")
    up.add_argument("--runtime", default="runc", choices=nodespec.RUNTIMES)
    up.add_argument("--node", action="append", metavar="SPEC",
                    help=f"instead of --nodes, once per node: {nodespec.SYNTAX}")
    up.set_defaults(run=cmd_up)
    verbs.add_parser("build", help=cmd_build.__doc__).set_defaults(run=cmd_build)
    verbs.add_parser("down", help=cmd_down.__doc__).set_defaults(run=cmd_down)
    status = verbs.add_parser("status", help=cmd_status.__doc__)
    status.add_argument("--output", choices=("text", "json"), default="text")
    status.set_defaults(run=cmd_status)


def _add_using(verbs) -> None:
    for name, run in (("kubectl", cmd_kubectl), ("helm", cmd_helm), ("exec", cmd_exec)):
        parser = verbs.add_parser(name, help=run.__doc__, add_help=False, prefix_chars="\0")
        _add_rest(parser)
        parser.set_defaults(run=run)
    logs = verbs.add_parser("logs", help=cmd_logs.__doc__)
    logs.add_argument("part", help=f"{', '.join(PART_NAMES)}, NODE/{{{','.join(NODE_LOGS)}}}")
    logs.add_argument("--follow", "-f", action="store_true")
    logs.add_argument("--tail", default="+1", help="only the last lines (all)")
    logs.set_defaults(run=cmd_logs)
    shell = verbs.add_parser("shell", help=cmd_shell.__doc__)
    shell.add_argument("name", metavar="NODE")
    _add_rest(shell)
    shell.set_defaults(run=cmd_shell)
    load = verbs.add_parser("load-image", help=cmd_load_image.__doc__)
    load.add_argument("archives", nargs="+", metavar="FILE")
    load.set_defaults(run=cmd_load_image)
    make = verbs.add_parser("build-image", help=cmd_build_image.__doc__)
    make.add_argument("archive")
    make.add_argument("tag", help="such as localhost/agent:1")
    make.add_argument("files", nargs="+", metavar="FILE[:/PATH/IN/IMAGE]")
    make.add_argument("--entrypoint", nargs="+", help="the first file, unless named")
    make.add_argument("--user", default="", help="UID:GID")
    make.set_defaults(run=cmd_build_image)
    tell = verbs.add_parser("instruct", help=cmd_instruct.__doc__)
    tell.add_argument("--namespace", "-n", default="default")
    tell.add_argument("pod")
    tell.add_argument("instruction", nargs="+", help="such as cpu=300m memory=64Mi leak=1Mi")
    tell.set_defaults(run=cmd_instruct)
    waiting = verbs.add_parser("wait", help=cmd_wait.__doc__)
    waiting.add_argument("object", nargs="?", metavar="KIND/NAME")
    waiting.add_argument("condition", help="JSONPATH OP VALUE, or with --file a pattern")
    waiting.add_argument("--namespace", "-n")
    waiting.add_argument("--file")
    waiting.add_argument("--timeout", type=_seconds, default=60, help="seconds (60)")
    waiting.set_defaults(run=cmd_wait)


def _add_faults(verbs) -> None:
    for name in PART_NAMES:
        part = verbs.add_parser(name, help=f"{name}: {cmd_part.__doc__}")
        part.add_argument("action", choices=("kill", "hang", "resume", "start", "restart"))
        part.set_defaults(run=cmd_part)
    node = verbs.add_parser("node", help=cmd_node.__doc__)
    node.add_argument("action", choices=("kill", "hang", "resume", "start", "reboot", "delete"))
    node.add_argument("name", metavar="NODE")
    node.add_argument("--wipe", action="store_true", help="the disk goes too")
    node.set_defaults(run=cmd_node)
    for name, run in (("partition", cmd_partition), ("heal", cmd_heal)):
        parser = verbs.add_parser(name, help=run.__doc__)
        parser.add_argument("name", metavar="NODE")
        parser.set_defaults(run=run)
    clock = verbs.add_parser("clock", help=cmd_clock.__doc__)
    clock.add_argument("name", metavar="NODE")
    clock.add_argument("seconds", type=_seconds, help="such as +3600 or -60")
    clock.set_defaults(run=cmd_clock)


def parser() -> argparse.ArgumentParser:
    """The whole grammar."""
    top = argparse.ArgumentParser(prog="cluster", description=DESCRIPTION,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--name", dest="cluster", metavar="NAME", default="default", help="which cluster (default)")
    top.add_argument("--quiet", action="store_true", help="no progress, only errors")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_running(verbs)
    _add_using(verbs)
    _add_faults(verbs)
    return top


def main(arguments: list[str]) -> int:
    """Runs one verb."""
    options = parser().parse_args(arguments)
    report.quiet = options.quiet
    try:
        return options.run(Cluster(options.cluster), options)
    except (LabError, uml.UmlError, ValueError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        print("cluster: interrupted; what was started goes on: cluster down ends it",
              file=sys.stderr)
        return 130
