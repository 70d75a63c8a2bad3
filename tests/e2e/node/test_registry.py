# SPDX-License-Identifier: GPL-3.0-or-later
"""Images come from a real registry that wants TLS and a password: who may pull does, who may not touches nothing."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, Image
from edpm_lab.labs import Lab
from edpm_lab.nodes import Nodes
from edpm_lab.registry import Registry, tiny_image

from .probe import Caller, bundle

NODE = "edpm-compute-8"
FILES = {"01.conf": b"[DEFAULT]\nvalue = one\n"}

#: A registry that is nowhere, with the lab's as its mirror.
ELSEWHERE = "registry.nowhere.test"
MIRRORED = """[[registry]]
prefix = "{elsewhere}"
location = "{elsewhere}"
[[registry.mirror]]
location = "{mirror}"
"""


@dataclass(frozen=True)
class Stock:
    """A node, and a registry with three images that the node has not seen."""

    caller: Caller
    registry: Registry
    images: tuple[str, ...]

    def probe(self, reference: str, **others: str) -> Bundle:
        """The probe in an image, with what the registry wants to see."""
        given = {"auth": self.registry.credentials(), **others}
        made = bundle(reference, FILES)
        return replace(made, image=Image(reference, certificates={"ca.crt": self.registry.authority}, **given))

    def has(self, reference: str) -> bool:
        return self.caller.nodes.execute(NODE, "podman", "image", "exists", reference, check=False).returncode == 0


@pytest.fixture(scope="module")
def stock(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Stock:
    registry = Registry(lab).up()
    images = tuple(registry.push(tiny_image(tag), f"probe:{tag}") for tag in ("one", "two", "three"))
    nodes = Nodes(lab)
    nodes.up([NODE])
    return Stock(Caller(nodes, NODE, tmp_path_factory.mktemp("registry")), registry, images)


@pytest.fixture
def live(stock: Stock) -> Bundle:
    """The probe in the first image, pulled with the right password and running."""
    made = stock.probe(stock.images[0])
    if not stock.caller.runs(made.digest):
        answer = stock.caller.deploy(made)
        assert not answer["failed"], answer["shown"]
    return made


def test_the_right_password_pulls_and_stays_nowhere_on_the_node(stock: Stock) -> None:
    assert not stock.has(stock.images[0])
    made = stock.probe(stock.images[0])
    answer = stock.caller.deploy(made, "-vvv")
    assert (answer["changed"], answer["failed"]) == (True, False), answer["shown"]
    assert stock.caller.runs(made.digest)
    asked = stock.registry.requests()
    print("\n".join(asked))
    assert "GET /v2/probe/manifests/one 200" in asked
    word = json.loads(stock.registry.credentials())["auths"][stock.registry.place]["auth"]
    password = base64.b64decode(word).decode().partition(":")[2]
    assert word not in answer["shown"]
    found = f"grep -rlF -e {word} -e {password} /etc /root /run /tmp /var/lib/openstack /var/log 2>/dev/null"
    assert stock.caller.sh(found, check=False) == ""


@pytest.mark.parametrize(
    ("image", "wrong", "told"),
    [
        ("probe:two", {"auth": "wrong"}, "authentication required"),
        ("probe:two", {"auth": ""}, "authentication required"),
        ("probe:none", {}, "manifest unknown"),
        ("probe:two", {"pull": "never"}, "is not on the node"),
    ],
    ids=["another password", "no password", "an image that is not there", "pulling forbidden"],
)
def test_a_refusal_is_a_sentence_and_leaves_everything_as_it_was(
    stock: Stock, live: Bundle, image: str, wrong: dict[str, str], told: str
) -> None:
    reference = f"{stock.registry.place}/{image}"
    given = {**wrong, **({"auth": stock.registry.credentials("wrong")} if wrong.get("auth") == "wrong" else {})}
    before = stock.caller.tree(), stock.caller.invocation()
    answer = stock.caller.deploy(stock.probe(reference, **given))
    print(answer["msg"])
    assert answer["failed"], answer["shown"]
    assert reference in answer["msg"]
    assert told in answer["msg"]
    assert "\n" not in answer["msg"].strip()
    assert (stock.caller.tree(), stock.caller.invocation()) == before
    assert stock.caller.runs(live.digest)
    assert not stock.has(reference)


def test_an_authority_that_nobody_named_is_not_trusted(stock: Stock, live: Bundle) -> None:
    trusting = stock.probe(stock.images[1])
    answer = stock.caller.deploy(replace(trusting, image=replace(trusting.image, certificates={})))
    print(answer["msg"])
    assert answer["failed"]
    assert "certificate" in answer["msg"]
    assert stock.caller.runs(live.digest)


def test_a_mirror_is_asked_instead_of_a_registry_that_cannot_be_reached(stock: Stock, live: Bundle) -> None:
    reference = f"{ELSEWHERE}/probe:two"
    without = stock.caller.deploy(stock.probe(reference))
    assert without["failed"], without["shown"]
    assert stock.caller.runs(live.digest)
    seen = len(stock.registry.requests())
    mirrors = MIRRORED.format(elsewhere=ELSEWHERE, mirror=stock.registry.place)
    made = stock.probe(reference, registries=mirrors)
    answer = stock.caller.deploy(made)
    assert not answer["failed"], answer["shown"]
    assert stock.caller.runs(made.digest)
    asked = stock.registry.requests()[seen:]
    print("\n".join(asked))
    assert "GET /v2/probe/manifests/two 200" in asked
    assert stock.caller.sh(f"grep -rl {ELSEWHERE} /etc/containers/registries.conf* || true") == ""


def test_a_node_that_has_the_image_reaches_out_to_nobody(stock: Stock) -> None:
    """First while the registry would answer and nobody asks it, then while it is gone."""
    first = stock.probe(stock.images[2])
    assert not stock.caller.deploy(first)["failed"]
    seen = stock.registry.requests()
    changed = replace(bundle(stock.images[2], {"01.conf": b"[DEFAULT]\nvalue = two\n"}), image=first.image)
    answer = stock.caller.deploy(changed)
    assert (answer["failed"], answer["changed"]) == (False, True), answer["shown"]
    assert stock.registry.requests() == seen
    stock.registry.stop()
    try:
        answer = stock.caller.deploy(first)
        assert (answer["failed"], answer["changed"]) == (False, True), answer["shown"]
        assert stock.caller.runs(first.digest)
    finally:
        stock.registry.up()


def test_a_rollback_starts_the_image_that_ran_although_its_tag_has_moved(stock: Stock) -> None:
    """Nothing but the generation's own name holds the old image then, and with its last generation it is gone."""
    for tag in ("one", "two"):
        reference = stock.registry.push(tiny_image(tag), "probe:moving")
        changed = bundle(reference, {"01.conf": f"[DEFAULT]\nvalue = {tag}\n".encode()})
        answer = stock.caller.deploy(replace(changed, image=replace(stock.probe(reference).image, pull="always")))
        assert (answer["failed"], answer["pulled"]) == (False, True), answer["shown"]
        assert _tag_that_runs(stock) == tag
    stock.caller.sh("podman image prune --force")
    answer = stock.caller.go_back()
    assert not answer["failed"], answer["shown"]
    assert _tag_that_runs(stock) == "one"
    assert "value = one" in stock.caller.sh("podman exec edpm_probe cat /etc/probe/01.conf")
    assert not stock.caller.remove()["failed"]
    assert "edpm_generation" not in stock.caller.sh("podman images --all")


def _tag_that_runs(stock: Stock) -> str:
    return stock.caller.sh("podman exec edpm_probe cat /etc/tag").strip()
