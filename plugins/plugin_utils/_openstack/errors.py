# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong with OpenStack; the text of each is one sentence for a person."""

from __future__ import annotations


class OpenStackError(Exception):
    """Base of all of them; its text can be shown as it is."""


class CredentialsError(OpenStackError):
    """There is no way in: the credentials are not there, or they are not usable."""


class InUseError(OpenStackError):
    """Servers are on the compute, or something of it is still in use."""


class TooLateError(OpenStackError):
    """What was waited for did not happen in time."""
