# SPDX-License-Identifier: Apache-2.0

"""Entry points of the programs, and the assembly of their parts.

Start with ``agent`` or ``cluster``. The package contains no rules of the
domain.
"""
