# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written to a cluster: service objects, the marks that policies judge by, and status."""
