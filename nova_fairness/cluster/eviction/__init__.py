# SPDX-License-Identifier: Apache-2.0

"""Evictions of servers, from the decision until their room is free.

Start with ``evictor``; the other modules are the causes of evictions. This
package never chooses victims of preemption by itself: ``planners.preemption``
does.
"""
