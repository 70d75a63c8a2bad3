# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m edpm_lab` is `edpm-lab`."""

import sys

from .cli import main

sys.exit(main())
