# SPDX-License-Identifier: GPL-3.0-or-later
"""A tag that is always pulled means another image each time; a generation holds on to the one that it had."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.edpm.services.plugins.module_utils._node.bundle import Bundle, Image
from ansible_collections.edpm.services.plugins.module_utils._node.errors import Failed, ImageMissing, Invalid

from .fakes import away, back, bundle_of, deploy, text
from .programs import IMAGE, QUADLET, UNIT, World
from .samples import FIRST, JUDGE, SECOND, A, B, C, D

KEPT = "localhost/edpm_generation"


def pushed(world: World, image: str, made: Bundle) -> Bundle:
    """The same, to be pulled always, while the tag means this image."""
    world.registry.add(IMAGE)
    world.pushed[IMAGE] = image
    return replace(made, image=Image(IMAGE, "always"))


def kept(world: World) -> dict[str, str]:
    """The images that generations hold on to, by the digests of these."""
    names = (name for name in world.images if name.startswith(KEPT))
    return {name.rpartition(":")[2]: world.means[name] for name in names}


@pytest.fixture
def twice(world: World) -> World:
    deploy(world, pushed(world, "old", bundle_of(world, A, FIRST)))
    deploy(world, pushed(world, "new", bundle_of(world, B, SECOND)))
    return world


def test_a_rollback_starts_the_image_that_ran_with_the_old_files(twice: World) -> None:
    assert twice.processes[UNIT].image == "new"
    assert back(twice).restarted
    assert (twice.processes[UNIT].image, dict(twice.processes[UNIT].files)) == ("old", FIRST)
    assert twice.means[IMAGE] == "new"
    back(twice)
    assert twice.processes[UNIT].image == "new"


def test_a_service_that_does_not_get_well_goes_back_to_its_old_image(twice: World) -> None:
    with pytest.raises(Failed):
        deploy(twice, pushed(twice, "newest", bundle_of(twice, C, {"1": b"die"})))
    assert twice.processes[UNIT].image == "new"
    assert kept(twice) == {A: "old", B: "new"}


def test_a_refusal_leaves_the_image_that_the_service_would_be_started_from_again(twice: World) -> None:
    with pytest.raises(Invalid):
        deploy(twice, pushed(twice, "newest", bundle_of(twice, C, {"1": b"unknown_option"}, validation=JUDGE)))
    twice.start(UNIT)
    assert twice.processes[UNIT].image == "new"


def test_an_image_goes_with_its_generation(twice: World) -> None:
    deploy(twice, pushed(twice, "newer", bundle_of(twice, C, FIRST, keep=2)))
    assert kept(twice) == {B: "new", C: "newer"}
    deploy(twice, replace(bundle_of(twice, D, SECOND, keep=2), image=Image(IMAGE)))
    assert kept(twice) == {C: "newer"}
    away(twice)
    assert kept(twice) == {}


def test_another_services_image_stays(twice: World) -> None:
    other = bundle_of(twice, C, FIRST, service="other", units={"edpm_other.container": text(twice, "other")})
    deploy(twice, pushed(twice, "new", other))
    away(twice)
    assert kept(twice) == {C: "new"}


def test_when_the_image_is_pulled_is_no_reason_to_restart(twice: World) -> None:
    sometimes = bundle_of(twice, B, SECOND)
    assert not deploy(twice, sometimes).changes.any
    always = pushed(twice, "newer", sometimes)
    assert not deploy(twice, always).changes.any
    assert twice.processes[UNIT].image == "new"


def test_a_generation_that_did_not_keep_its_image_is_warned_of(world: World) -> None:
    deploy(world, bundle_of(world, A, FIRST))
    made = pushed(world, "new", bundle_of(world, B, SECOND))
    for check in (True, False):
        told = deploy(world, made, check=check).warnings
        assert [one for one in told if one.startswith("The generation aaaaaaa of nova_compute has not kept its image")]
    assert len(deploy(world, made).warnings) == 1
    assert len(deploy(world, pushed(world, "newer", bundle_of(world, C, FIRST))).warnings) == 1


def test_a_kept_image_that_somebody_removed_is_told_of(twice: World) -> None:
    twice.images.discard(f"{KEPT}:{A}")
    with pytest.raises(ImageMissing, match=f"The image {KEPT}:{A} of generation aaaaaaa of nova_compute is no longer"):
        back(twice)
    assert twice.processes[UNIT].image == "new"


def test_a_kept_image_that_somebody_removed_comes_back_with_its_generation(twice: World) -> None:
    twice.images.discard(f"{KEPT}:{B}")
    (twice.places.units / QUADLET).write_text("edited")
    deploy(twice, bundle_of(twice, B, SECOND))
    assert kept(twice)[B] == twice.processes[UNIT].image == "new"


def test_no_image_is_kept_where_its_name_always_means_the_same(world: World) -> None:
    pinned = f"{IMAGE}@sha256:{A}"
    world.images.add(pinned)
    world.registry.add(pinned)
    deploy(world, bundle_of(world, A, FIRST))
    deploy(world, bundle_of(world, B, SECOND, image=Image(pinned, "always")))
    assert kept(world) == {}
    assert not [call for call in world.argv("podman") if call[1] in ("tag", "images", "rmi")]
