# SPDX-License-Identifier: Apache-2.0

"""Keys of hosts: files, revocation and signatures.

Start with ``keyring``. The package never writes a private key that others can
read.
"""
