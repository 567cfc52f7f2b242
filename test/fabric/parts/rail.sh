# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# path/ and rail/verbs of common/coop: processes connect on demand over all rails. Test names: ground.program.case.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# shellcheck source=test/fabric/lib/cases.sh
. "$here/lib/cases.sh"

# shellcheck disable=SC2034 # for run_cases
ground_options() {
    options=(--hosts 2 --hcas 2) arguments=()
    case $1 in
    two) ;;
    one) options=(--hosts 2 --hcas 1) ;;
    one_lmc*) options=(--hosts 2 --hcas 1 --lmc "${1#one_lmc}") ;;
    lmc*) options+=(--lmc "${1#lmc}") ;;
    ports) options+=(--ports 2) ;;
    roce) options+=(--link-layer roce) ;;
    mtu256) options+=(--mtu 256) ;;
    pkeys) options+=(--pkeys "0x7fff,0,0x8001") ;;
    grh) options+=(--grh required) ;;
    nosrq | small) options+=(--profile "$1") ;;
    eight) options=(--hosts 8 --hcas 1) ;;
    eight_lmc1) options=(--hosts 8 --hcas 2 --lmc 1) ;;
    *) echo "rail: no ground '$1'" >&2; exit 2 ;;
    esac
}

part_rail() {
    local ground grounds=(two lmc1 roce nosrq pkeys grh)
    [ "$long" = no ] || grounds+=(one lmc2 one_lmc2 small ports mtu256)
    for ground in "${grounds[@]}"; do run_cases "$ground" rails; done
    limit=400 run_cases eight many
    [ "$long" = no ] || limit=600 run_cases eight_lmc1 many
}
