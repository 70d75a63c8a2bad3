# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab of real parts: Kubernetes, EDPM nodes and OpenStack service images on one machine.

Reading order: `errors` and `places` (words and folders), `command` and `progress` (running things
and telling about it), `cache` (what is built once), `prerequisites` (what the host must have),
`labs` (a named lab and its end), then the parts themselves and `cli`.
"""
