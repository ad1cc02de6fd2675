#!/usr/bin/env bash
#
# SPDX-License-Identifier: Apache-2.0

# Runs one command in a virtual machine that has control groups of version 2
# only. See --help.

set -euo pipefail
# shellcheck source=tools/environment.sh
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

usage() {
    cat <<'TEXT'
Usage: tools/v2-guest.sh [OPTION...] COMMAND [ARGUMENT...]

Installs what it needs (apt, pip into .venv), boots a small virtual machine
with a pure cgroup v2 hierarchy, runs COMMAND in it as root, in this checkout
and with this machine's files (read-only: what it changes is gone afterwards),
and ends with its exit code. The directory $V2_EXCHANGE is shared both ways.
/dev/vda and /dev/vdb are empty disks, a fast and a slow one.

  --memory-mib N  memory of the machine, default 2048
  --cpus N        number of its CPUs, default 2
  --timeout S     seconds after which the command is killed, default 600
  --keep DIR      copy what the command left in $V2_EXCHANGE to DIR

Exit code 125: the machine did not boot, or the command took too long.
Example: tools/v2-guest.sh pytest -q tests/functional/test_apply_real.py
TEXT
}

main() {
    case ${1:-} in
        --help | -h) usage && exit 0 ;;
        '') usage >&2 && exit 2 ;;
    esac
    cd "$TOP"
    environment compile lab >&2
    exec python -m tests.fixtures.v2_guest "$@"
}

main "$@"
