# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The semantics of InfiniBand: one program per topic, with many cases. Test names: ground.topic.case. A ground is a kind of
# subnet.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# shellcheck source=test/fabric/lib/cases.sh
. "$here/lib/cases.sh"

# shellcheck disable=SC2034 # for run_cases
ground_options() {
    options=(--hosts 2 --hcas 2) arguments=()
    case $1 in
    ib) ;;
    far) arguments=(--far) ;;
    roce) options+=(--link-layer roce) ;;
    roce_far) options+=(--link-layer roce) arguments=(--far) ;;
    nosrq | noapm | small | old | unordered | nolastwqe) options+=(--profile "$1") ;;
    lmc) options+=(--lmc 1) ;;
    lmc_far) options+=(--lmc 1) arguments=(--far) ;;
    lmc3) options+=(--lmc 3) ;;
    ports) options+=(--ports 2) ;;
    ports_far) options+=(--ports 2) arguments=(--far) ;;
    twelve_hcas) options=(--hosts 2 --hcas 12) ;;
    one_hca) options=(--hosts 2 --hcas 1) ;;
    slow) options+=(--rate 500MB/s --latency 5us) ;;
    mtu256) options+=(--mtu 256) ;;
    strict) options+=(--strict-mr) ;;
    strictarm) options+=(--strict-arm) ;;
    grh) options+=(--grh required) ;;
    two_fabrics | crossed_cables | one_way) options=(--topology "$here/topologies/$1.topology") arguments=(--far) ;;
    prefixes) options=(--topology "$here/topologies/two_prefixes.topology") ;;
    lmc_pkeys) options+=(--lmc 1 --pkeys "0xffff,0x8001,0x8002") ;;
    pkeys) options+=(--pkeys "0x8001,0xffff,0,0x0002,0x8002") ;;
    pkeys_far) options+=(--pkeys "0x8001,0xffff,0,0x0002,0x8002") arguments=(--far) ;;
    strictfork) options+=(--strict-fork) ;;
    register_cost) options+=(--register-cost "20us,10us") ;;
    *) echo "semantics: no ground '$1'" >&2; exit 2 ;;
    esac
}

part_semantics() {
    local connected="rc_transfers rc_errors retries atomics drain faults outages mute late"
    # shellcheck disable=SC2086 # lists of topics
    {
        run_cases ib devices memory completion qp_states $connected ud uc srq events extended order processes forks
        run_cases far $connected ud uc memory
        run_cases roce devices memory $connected ud srq events apm extended
        run_cases nosrq devices srq
        run_cases noapm apm
        run_cases small devices qp_states rc_transfers rc_errors atomics srq extended
        run_cases old extended
        run_cases unordered order rc_transfers
        run_cases nolastwqe srq
        run_cases lmc devices lmc apm ud late
        run_cases lmc_far lmc apm
        run_cases ports devices apm
        run_cases ports_far apm
        run_cases pkeys partitions
        run_cases lmc_pkeys apm
        run_cases grh grh rc_transfers ud
        run_cases prefixes grh
        run_cases twelve_hcas devices drain
        run_cases two_fabrics reach
        run_cases crossed_cables reach
        run_cases one_way reach
        run_cases pkeys_far partitions
        run_cases strict memory
        run_cases strictarm completion
        run_cases strictfork forks
        run_cases register_cost registration
        [ "$long" = yes ] || return 0
        run_cases roce_far $connected ud
        run_cases lmc3 lmc apm
        run_cases one_hca rc_transfers rc_errors atomics drain srq completion
        run_cases slow $connected ud uc srq completion
        run_cases mtu256 $connected ud uc
        run_cases nosrq $connected
    }
}
