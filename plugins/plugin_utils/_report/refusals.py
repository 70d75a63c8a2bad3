# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person can do something about; the texts can be shown as they are."""

from __future__ import annotations

from .._config.options import OsloConfigMissingError
from .._kube.errors import KubernetesError
from .near import NotThereError
from .written import NotWrittenError

REFUSALS = (KubernetesError, NotThereError, NotWrittenError, OsloConfigMissingError)
