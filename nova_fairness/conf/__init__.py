# SPDX-License-Identifier: Apache-2.0

"""All options of this package, each with its unit and its range.

The module ``opts`` registers them. The package reads no file: oslo.config
does.
"""
