# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the documentation site; docs/build puts the generated reference beside these pages."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

project = "edpm.services"
author = "Contributors to the edpm.services project"
project_copyright = author
extensions = ["myst_parser", "sphinx_antsibull_ext"]
html_theme = "furo"
html_title = "edpm.services"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

#: Labels of Ansible's own documentation that the generated reference points at, and the pages they are on.
ANSIBLE = "https://docs.ansible.com/ansible/latest/"
ANSIBLE_PAGES = {
    "action_plugins": "plugins/action.html",
    "ansible_configuration_settings": "reference_appendices/config.html",
    "common_return_values": "reference_appendices/common_return_values.html",
}


def ansible_page(label: str) -> str | None:
    """Where Ansible documents a label; the site is built without asking its server."""
    if found := re.fullmatch(r"ansible_collections\.ansible\.builtin\.(\w+)_(module|lookup|inventory)", label):
        return f"collections/ansible/builtin/{found[1]}_{found[2]}.html"
    return ANSIBLE_PAGES.get(label)


def resolve(_app: Sphinx, _env: BuildEnvironment, node: pending_xref, shown: nodes.TextElement) -> nodes.Node | None:
    """Link to Ansible's documentation what is not on this site; anything else stays an error."""
    page = ansible_page(node.get("reftarget", ""))
    return nodes.reference("", "", shown, internal=False, refuri=ANSIBLE + page) if page else None


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("missing-reference", resolve)
