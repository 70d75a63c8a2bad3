# SPDX-License-Identifier: GPL-3.0-or-later
"""The two things that can be told to a person: a fault with its remedy, and "not on this host"."""

from __future__ import annotations


class LabError(Exception):
    """A fault that a person can do something about; its text is one sentence with the remedy."""


class NotOnThisHost(LabError):
    """This host cannot run a part of the lab, whatever is installed on it; the text says why.

    Tests report it as not run (a failure under STRICT=1); the demo leaves the part out.
    """
