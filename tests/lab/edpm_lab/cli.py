# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of the lab: `edpm-lab --help` tells what there is."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from . import binaries, build, demo, images, labs, ovn, places, podman, servers, table
from .access import Access
from .api_server import api_server, found_api_server
from .cloud import COMPUTES, DEFAULT_PARTS, Cloud, found_cloud
from .cloud import PARTS as CLOUD_PARTS
from .cloud_manifests import METADATA
from .cluster import cluster, found_cluster
from .data_plane import DataPlane, spread
from .errors import LabError
from .labs import Lab
from .nodes import Nodes, default_names
from .progress import say

DEFAULT = "default"

#: Kinds of nodes and the images that they are made of.
KINDS = {"plain": "node", "ovn": ovn.IMAGE}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; a fault is one sentence on standard error."""
    signal.signal(signal.SIGTERM, _terminated)
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int | None] = arguments.command
    try:
        return command(arguments) or 0
    except LabError as fault:
        print(f"edpm-lab: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("edpm-lab: interrupted; what was half done has been removed", file=sys.stderr)
        return 130


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    """A polite end takes the same way out as Ctrl-C, so that nothing stays behind."""
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="edpm-lab", description="Real parts to test edpm.services with.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int | None], told: str) -> argparse.ArgumentParser:
        new = commands.add_parser(name, help=told, description=told)
        new.set_defaults(command=command)
        new.add_argument("--name", default=DEFAULT, help="the lab's name (default: %(default)s)")
        return new

    add("check", _check, "say which parts this host can run")
    built = add("build", _build, "build everything that is not in the cache yet")
    built.add_argument("what", nargs="*", help=f"of {', '.join(build.PARTS)}; all unless named")
    up = add("up", _up, "start nodes, and a cluster beside them")
    up.add_argument("count", type=int, help="how many nodes there shall be")
    up.add_argument("--cluster", action="store_true", help="a whole Kubernetes cluster that runs pods")
    up.add_argument("--kind", choices=KINDS, default="plain", help="of new nodes: ovn has OVN and libvirt installed")
    api = add("api", _api, "an API server with its etcd alone; needs no root")
    api.add_argument("verb", choices=["up", "down"])
    api.add_argument("--port", type=int, help="any free one unless given")
    api.add_argument("--kubeconfig", type=Path, help="write the administrator's kubeconfig here as well")
    add("down", _down, "take a lab down and leave nothing of it behind")
    listing = add("list", _list, "what runs, in all labs")
    form = listing.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="for programs")
    form.add_argument("--tsv", action="store_true", help="tab-separated, with a heading")
    ssh = add("ssh", _ssh, "log in to a node, or run a command there")
    ssh.add_argument("node")
    ssh.add_argument("words", nargs=argparse.REMAINDER, metavar="command")
    for verb, told in (
        ("reboot", "reboot a node"),
        ("kill", "cut a node's power"),
        ("start", "start a node that was killed"),
    ):
        add(verb, _power, told).add_argument("node")
        commands.choices[verb].set_defaults(verb=verb)
    chassis = add("ovn", _ovn, "switch Open vSwitch and OVN on at a node of the kind ovn")
    chassis.add_argument("node")
    chassis.add_argument(
        "southbound",
        nargs="?",
        help="OVN's southbound database, such as tcp:10.0.0.1:6642; the lab's cloud unless given",
    )
    _add_cloud(commands)
    described = add("data-plane", _data_plane, "write what a deployer would about the nodes, dealt out to two cells")
    described.add_argument("folder", type=Path)
    described.add_argument("--apply", action="store_true", help="write it into the lab's Kubernetes, too")
    add("inventory", _inventory, "print an Ansible inventory of the nodes")
    add("image", _image_reference, "print an image's reference; it is built where it is missing").add_argument("image")
    add("kubeconfig", _kubeconfig, "print the path of the administrator's kubeconfig")
    add("kubectl-path", _kubectl_path, "print the path of kubectl")
    clean = add("clean", _clean, "take every lab down")
    clean.add_argument("--cache", action="store_true", help="remove what was built, too")
    shown = add("demo", _demo, "show the product's main job")
    shown.add_argument("--source", choices=demo.SOURCES, default=demo.SOURCES[0])
    return parser


def _add_cloud(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    told = "OpenStack's control plane with two cells, or its message bus alone"
    verbs = commands.add_parser("cloud", help=told, description=told).add_subparsers(required=True, metavar="VERB")

    def add(name: str, command: Callable[[argparse.Namespace], int | None], told: str) -> argparse.ArgumentParser:
        new = verbs.add_parser(name, help=told, description=told)
        new.set_defaults(command=command)
        new.add_argument("--name", default=DEFAULT, help="the lab's name (default: %(default)s)")
        return new

    parts = add("up", _cloud_up, "start it, or further parts of it")
    parts.add_argument("--part", action="append", choices=list(CLOUD_PARTS), help="only this, and what it needs")
    add("down", _cloud_down, "remove it with all that it knew")
    written = add("manifests", _cloud_manifests, "write what the control plane's operators would have written")
    written.add_argument("folder", type=Path)
    written.add_argument("--metadata", choices=METADATA, default=METADATA[0], help="where Nova's metadata service runs")
    written.add_argument(
        "--apply", action="store_true", help="write it into the lab's Kubernetes, too, with its status"
    )
    booted = add("boot", _cloud_boot, "boot a server on each of these computes, and say what became of it")
    booted.add_argument("hosts", nargs="+", metavar="host")
    add("computes", _cloud_computes, "what Nova says of each compute: its cell, its state, its hypervisor")
    add("discover", _cloud_discover, "map new computes to their cells, as an administrator does in a conductor")
    add("ask", _cloud_ask, "one call of openstacksdk, as JSON").add_argument("call", help="such as compute.services")


def _check(_: argparse.Namespace) -> int:
    reasons = build.not_on_this_host()
    for part in build.PARTS:
        print(f"{part:<8} {'cannot run here: ' + reasons[part] if part in reasons else 'can run here'}")
    return 1 if reasons else 0


def _build(arguments: argparse.Namespace) -> int:
    if unknown := set(arguments.what) - set(build.PARTS):
        raise LabError(f"there is no {', '.join(sorted(unknown))} to build; there are {', '.join(build.PARTS)}")
    return build.build(arguments.what or build.PARTS)


def _up(arguments: argparse.Namespace) -> None:
    with labs.opened(arguments.name, kept=True) as lab:
        nodes = Nodes(lab)
        nodes.up(default_names(arguments.count), KINDS[arguments.kind])
        if arguments.cluster and not found_cluster(lab):
            cluster(lab)
    suffix = "" if arguments.name == DEFAULT else f" --name {arguments.name}"
    print(f"\nThe lab {arguments.name} runs until you say: edpm-lab down{suffix}\n")
    _print_table(_rows(arguments.name))
    lines = ["", f"log in         edpm-lab ssh{suffix} {_first(nodes)}", f"inventory      edpm-lab inventory{suffix}"]
    if arguments.cluster:
        lines += [
            f"kubernetes     export KUBECONFIG=$(edpm-lab kubeconfig{suffix})",
            "definitions    ansible-playbook edpm.services.install_cluster",
        ]
    print("\n".join(lines))
    if not shutil.which("edpm-lab"):
        print(f"               (the commands are in {Path(sys.executable).parent})")


def _first(nodes: Nodes) -> str:
    return next((node.name for node in nodes.list()), "NODE")


def _api(arguments: argparse.Namespace) -> None:
    if arguments.verb == "down":
        _down(arguments)
        return
    with labs.opened(arguments.name, kept=True) as lab:
        server = found_api_server(lab) or api_server(lab, port=arguments.port)
        if arguments.kubeconfig:
            arguments.kubeconfig.write_bytes(server.kubeconfig.read_bytes())
            arguments.kubeconfig.chmod(0o600)
    print(f"export KUBECONFIG={server.kubeconfig}")


def _down(arguments: argparse.Namespace) -> None:
    labs.close(arguments.name)


def _list(arguments: argparse.Namespace) -> None:
    rows = [row for name in labs.names() for row in _rows(name)]
    if arguments.json:
        print(json.dumps([dict(zip(HEADING, row, strict=True)) for row in rows], indent=2))
    elif arguments.tsv:
        print("\n".join("\t".join(row) for row in [HEADING, *rows]))
    elif rows:
        _print_table(rows)
    else:
        print("no lab runs; start one with: edpm-lab up 2")


HEADING = ("lab", "part", "address", "state")
Row = tuple[str, str, str, str]


def _rows(name: str) -> list[Row]:
    lab = labs.found(name)
    rows: list[Row] = []
    if server := found_api_server(lab):
        rows.append((name, "API server", server.url, "ready" if server.is_ready() else "not ready"))
    if whole := found_cluster(lab):
        rows.append((name, "cluster", whole.url, "running"))
    if cloud := found_cloud(lab):
        rows.append((name, "control plane", cloud.address, ", ".join(cloud.parts())))
    if (lab.folder / "nodes").exists():
        rows += [(name, node.name, node.address, node.state) for node in Nodes(lab).list()]
    return rows


def _print_table(rows: list[Row]) -> None:
    print(table.text([word.upper() for word in HEADING], rows))


def _ssh(arguments: argparse.Namespace) -> None:
    argv = [*Nodes(_running(arguments)).ssh_argv(arguments.node), *arguments.words]
    os.execvp(argv[0], argv)


def _power(arguments: argparse.Namespace) -> None:
    nodes = Nodes(_running(arguments))
    {"reboot": nodes.reboot, "kill": nodes.kill, "start": nodes.start}[arguments.verb](arguments.node)


def _ovn(arguments: argparse.Namespace) -> None:
    lab = _running(arguments)
    ovn.join(Nodes(lab), arguments.node, arguments.southbound or Cloud(lab).site.southbound)


def _cloud_up(arguments: argparse.Namespace) -> None:
    with labs.opened(arguments.name, kept=True) as lab:
        cloud = Cloud(lab).up(arguments.part or DEFAULT_PARTS)
    print(f"\nThe control plane is at {cloud.address}; its parts: {', '.join(cloud.parts())}")


def _cloud_down(arguments: argparse.Namespace) -> None:
    Cloud(_running(arguments)).down()


def _cloud_manifests(arguments: argparse.Namespace) -> None:
    lab = _running(arguments)
    for path in Cloud(lab).manifests(arguments.folder, metadata=arguments.metadata):
        print(path)
    if arguments.apply:
        Cloud(lab).apply(_kubernetes(lab), metadata=arguments.metadata)


def _cloud_boot(arguments: argparse.Namespace) -> int:
    booted = servers.boot(Cloud(_running(arguments)), arguments.hosts)
    print(table.text(servers.HEADING, [server.row() for server in booted]))
    return int(any(server.status != "ACTIVE" for server in booted))


def _cloud_computes(arguments: argparse.Namespace) -> None:
    print(table.text(COMPUTES, [one.row() for one in Cloud(_running(arguments)).computes()]))


def _cloud_discover(arguments: argparse.Namespace) -> None:
    argv = Cloud(_running(arguments)).discover_argv()
    os.execvp(argv[0], argv)


def _data_plane(arguments: argparse.Namespace) -> None:
    lab = _running(arguments)
    plane = DataPlane(lab, spread(lab))
    print(plane.write(arguments.folder))
    if arguments.apply:
        plane.apply(_kubernetes(lab))


def _cloud_ask(arguments: argparse.Namespace) -> None:
    print(json.dumps(Cloud(_running(arguments)).openstack(arguments.call), indent=2))


def _inventory(arguments: argparse.Namespace) -> None:
    print(Nodes(_running(arguments)).inventory(), end="")


def _image_reference(arguments: argparse.Namespace) -> None:
    print(images.image(arguments.image))


def _kubeconfig(arguments: argparse.Namespace) -> None:
    print(_kubernetes(_running(arguments)).kubeconfig)


def _kubernetes(lab: Lab) -> Access:
    server = found_cluster(lab) or found_api_server(lab)
    if server is None:
        raise LabError(f"the lab {lab.name} has no Kubernetes; start one with: edpm-lab api up --name {lab.name}")
    return server


def _kubectl_path(_: argparse.Namespace) -> None:
    print(binaries.binaries("kubectl")["kubectl"])


def _running(arguments: argparse.Namespace) -> Lab:
    if arguments.name not in labs.names():
        raise LabError(f"no lab {arguments.name} runs; start one with: edpm-lab up 2 --name {arguments.name}")
    return labs.found(arguments.name)


def _clean(arguments: argparse.Namespace) -> None:
    for name in labs.names():
        say(f"taking the lab {name} down")
        labs.close(name)
    shutil.rmtree(places.labs().parent, ignore_errors=True)
    if arguments.cache:
        podman.remove_everything()
        shutil.rmtree(places.cache(), ignore_errors=True)


def _demo(arguments: argparse.Namespace) -> int:
    return demo.show(arguments.source)
