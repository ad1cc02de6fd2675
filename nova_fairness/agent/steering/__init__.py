# SPDX-License-Identifier: Apache-2.0

"""Controls, throttles and pins of a node, and the check of their effect.

Start with ``controls``, which creates those that the node supports. This
package never decides how heavy a user is.
"""
