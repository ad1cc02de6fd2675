# SPDX-License-Identifier: Apache-2.0

"""Entry points of the programs, and the assembly of their parts.

Start with ``agent`` or ``cluster``. This package holds no rules of the domain.
"""
