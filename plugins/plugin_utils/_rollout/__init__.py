# SPDX-License-Identifier: GPL-3.0-or-later
"""How a plan gets to its nodes: what a node has and lacks, who comes when, and what became of everyone."""
