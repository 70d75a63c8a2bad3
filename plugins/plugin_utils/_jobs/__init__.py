# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks run in the cluster: what a run is, its objects, its pods' side, and what became of each node."""
