#!/usr/bin/env bash
#
# SPDX-License-Identifier: Apache-2.0

# Collects what the pages of Horizon say, for translators. See --help.

set -euo pipefail
# shellcheck source=tools/environment.sh
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

usage() {
    cat <<'TEXT'
Usage: tools/messages.sh [--new LANGUAGE | --check] [--help]

Writes all sentences of the pages of Horizon to
fairness_dashboard/locale/django.pot, merges them into the catalogue of each
language, and compiles these:

  --new LANGUAGE  begins a catalogue for a language, such as de or pt_BR
  --check         changes nothing; the exit code is 1 if a file is not up to
                  date

Installs what it needs (apt, pip into build/dashboard); needs root for apt only.
TEXT
}

parse_options() {
    CHECK=0 LANGUAGE=''
    case ${1:-} in
        '') ;;
        --new)
            LANGUAGE=${2:-}
            [[ $LANGUAGE =~ ^[a-z]{2,3}(_[A-Z]{2})?$ ]] ||
                die "--new needs a language such as de, not: '$LANGUAGE'"
            shift
            ;;
        --check) CHECK=1 ;;
        --help | -h) usage && exit 0 ;;
        *) die "unknown option: $1 (see --help)" ;;
    esac
    (($# <= 1)) || die "one option at most, not: $*"
}

# collect DIRECTORY: write the catalogues of the pages there. Times would make
# two runs differ.
collect() {
    local django=$DASHBOARD_VENV/bin/django-admin file
    cd "$1"
    mkdir -p "locale${LANGUAGE:+/$LANGUAGE/LC_MESSAGES}"
    "$django" makemessages --all ${LANGUAGE:+--locale "$LANGUAGE"} --keep-pot \
        --no-obsolete --add-location file
    find locale -name '*.po*' -exec sed -i \
        -e '/^# \(SOME\|Copyright\|This file\|FIRST\)/d' \
        -e '/^"\(POT-Creation\|PO-Revision\)-Date: /d' \
        -e 's/PACKAGE VERSION/nova-fairness/' {} +
    while read -r file; do
        msgfmt --check --output-file "${file%.po}.mo" "$file"
    done < <(find locale -name '*.po' | sort)
}

main() {
    local pages=$TOP/fairness_dashboard copy
    parse_options "$@"
    cd "$TOP"
    system_packages compile messages
    dashboard_environment
    if ((!CHECK)); then
        step 'messages' collect "$pages"
        return
    fi
    copy=$(mktemp -d)
    cp -r "$pages" "$copy/"
    step 'messages' collect "$copy/fairness_dashboard"
    diff -r "$pages/locale" "$copy/fairness_dashboard/locale" >&2 ||
        die 'catalogues are not up to date: run tools/messages.sh'
    rm -r "$copy"
}

main "$@"
