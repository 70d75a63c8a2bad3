# SPDX-License-Identifier: GPL-3.0-or-later
"""From Kubernetes resources to a plan for every node: pure, no I/O, the same input gives the same plan."""
