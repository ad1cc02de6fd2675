# SPDX-License-Identifier: Apache-2.0

"""Fair sharing of an OpenStack cloud while it runs."""
