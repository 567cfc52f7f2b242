# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# btl/coopib under both point-to-point components: the storm of test/mpi, which checks every byte, over one rail and many, with every
# policy and with rings of several shapes. Test names of the storms: ground.pml.policy and ring_what.ground.pml. Names of other tests
# begin with their group (bad_input, report, puts, …) or with site_NN.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# The program uses the headers of Open MPI and of common/coop, like a component.
build_puts() {
    local folder top=$here/../.. includes=() libraries
    puts=$results/bin-mpi/coopib_puts
    for folder in $(mpicc --showme:incdirs); do
        includes+=(-isystem "$folder" -isystem "$folder/openmpi" -isystem "$folder/openmpi/opal/include")
    done
    read -ra libraries <<<"$(mpicc --showme:link)"
    ${CXX:-g++} -std=c++20 -O1 -Wall -Wextra -Werror -I"$top/opal/mca/common" -I"$top/opal/include" "${includes[@]}" \
        -isystem "$top/opal/include/standin" -o "$puts" "$here/programs/coopib_puts.cc" "${libraries[@]}" -lopen-pal \
        -L"$prefix/lib" -Wl,-rpath,"$prefix/lib" -lmca_common_coop
}

prepare_storm() {
    local program
    mkdir -p "$results/bin-mpi"
    storm=$(mpi_program storm) || return 1
    ring=$results/bin-mpi/ring
    mpicc -O1 -o "$ring" "$here/../../docs/examples/ring.c" || return 1
    pvars=$results/bin-mpi/coopib_pvars
    mpicc -O1 -Wall -Wextra -Werror -o "$pvars" "$here/programs/coopib_pvars.c" || return 1
    refuse_rail=$results/bin-mpi/refuse_rail.so
    ${CC:-gcc} -O1 -Wall -Wextra -Werror -shared -fPIC -o "$refuse_rail" "$here/programs/refuse_rail.c" -ldl || return 1
    watch_sweeps=$results/bin-mpi/watch_sweeps.so
    ${CC:-gcc} -O1 -Wall -Wextra -Werror -shared -fPIC -o "$watch_sweeps" "$here/programs/watch_sweeps.c" -ldl || return 1
    watch_addresses=$results/bin-mpi/watch_addresses.so
    ${CC:-gcc} -O1 -Wall -Wextra -Werror -shared -fPIC -o "$watch_addresses" "$here/programs/watch_addresses.c" -ldl || return 1
    for program in stream memory; do
        mpicc -O1 -Wall -Wextra -Werror -o "$results/bin-mpi/coopib_$program" "$here/programs/coopib_$program.c" || return 1
    done
    kinds=$results/bin-mpi/coopib_kinds
    mpicc -O1 -Wall -Wextra -Werror -o "$kinds" "$here/programs/coopib_kinds.c" || return 1
    rings=$results/bin-mpi/coopib_rings
    mpicc -O1 -Wall -Wextra -Werror -o "$rings" "$here/programs/coopib_rings.c" || return 1
    broken_ring=$results/bin-mpi/coopib_broken_ring
    mpicc -O1 -Wall -Wextra -Werror -rdynamic -o "$broken_ring" "$here/programs/coopib_broken_ring.c" || return 1
    flood=$results/bin-mpi/flood
    mpicc -O1 -Wall -Wextra -Werror -o "$flood" "$here/programs/flood.c" || return 1
    longest=$results/bin-mpi/longest
    mpicc -O1 -Wall -Wextra -Werror -o "$longest" "$here/programs/longest.c" || return 1
    forks=$results/bin-mpi/forks refuse_fork=$results/bin-mpi/refuse_fork.so
    mpicc -O1 -Wall -Wextra -Werror -o "$forks" "$here/programs/forks.c" || return 1
    ${CC:-gcc} -O1 -Wall -Wextra -Werror -shared -fPIC -o "$refuse_fork" "$here/programs/refuse_fork.c" || return 1
    one_sided=$results/bin-mpi/one_sided
    mpicc -O1 -Wall -Wextra -Werror -o "$one_sided" "$here/programs/one_sided.c" || return 1
    build_puts || return 1
    eval "$("$prefix/bin/coop-env")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

coopib_ground() { # GROUND: sets `options`, and `np`
    np=2
    case $1 in
    one_rail) options=(--hosts 2) ;;
    two_hcas) options=(--hosts 2 --hcas 2) ;;
    lmc1) options=(--hosts 2 --lmc 1) ;;
    lmc2) options=(--hosts 2 --lmc 2) ;;
    four_rails) options=(--hosts 2 --hcas 2 --lmc 1) ;;
    unequal) options=(--hosts 2 --hcas 3 --rate "250MB/s,100MB/s,50MB/s") ;;
    slow) options=(--hosts 2 --hcas 2 --rate 500MB/s --latency 5us) ;;
    roce) options=(--hosts 2 --hcas 2 --link-layer roce) ;;
    nosrq | small | noapm | unordered) options=(--hosts 2 --hcas 2 --profile "$1") ;;
    ports) options=(--hosts 2 --ports 2) ;;
    four_hosts) options=(--hosts 4 --hcas 2 --virtual-hosts --slots 2) np=8 ;;
    strict) options=(--hosts 2 --hcas 2 --strict-mr) ;;
    site_28.strict_arm) options=(--hosts 2 --hcas 2 --strict-arm) ;;
    partitions | two_subnets) options=(--topology "$here/topologies/$1.topology") ;;
    limited) options=(--hosts 2 --hcas 2 --pkeys "0,0x0005") ;;
    grh) options=(--hosts 2 --hcas 2 --grh required) ;;
    *) echo "coopib: no ground '$1'" >&2; exit 2 ;;
    esac
}

# coopib_storm GROUND PML POLICY [MPIRUN ARGUMENT…] -- [STORM ARGUMENT…]
coopib_storm() {
    local ground=$1 pml=$2 policy=$3 options np btl=coopib,self
    shift 3
    local extra=()
    while [ "$1" != -- ]; do extra+=("$1"); shift; done
    shift
    coopib_ground "$ground"
    [ "$ground" != four_hosts ] || btl=coopib,vader,self
    check "$ground.$pml.$policy" on_subnet "${options[@]}" -- mpirun -np "$np" --oversubscribe --mca pml "$pml" --mca btl "$btl" \
        --mca btl_coopib_large_policy "$policy" --mca mpi_yield_when_idle 1 "${extra[@]}" "$storm" --seed 11 --messages 600 "$@"
}

# --- rings ------------------------------------------------------------------------------------------------------------

# coopib_ring_storm WHAT GROUND PML [MPIRUN ARGUMENT…]
coopib_ring_storm() {
    local what=$1 ground=$2 pml=$3 options np btl=coopib,self
    shift 3
    coopib_ground "$ground"
    [ "$ground" != four_hosts ] || btl=coopib,vader,self
    check "ring_$what.$ground.$pml" on_subnet "${options[@]}" -- mpirun -np "$np" --oversubscribe --mca pml "$pml" --mca btl "$btl" \
        --mca mpi_yield_when_idle 1 "$@" "$storm" --seed 12 --messages 600
}

# Slots with an odd number of cache lines need no padding: the 37 slots of 8256 bytes are contiguous.
says_that_a_slot_is_broken() { # PML
    local output
    output=$(ends_with_an_error coopib_pair "$1" --mca btl_coopib_ring_slots 37 --mca btl_coopib_ring_bytes 8256 "$broken_ring" 37 8256 2>&1) ||
        { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 1 "  Field: lap of a ring slot" && has_line "$output" 1 "  Value: 119" && has_line "$output" 1 "  Peer:  rank 0"
}

coopib_rings() {
    local pml ground
    for pml in ob1 coop; do
        for ground in one_rail four_rails roce nosrq four_hosts; do
            coopib_ring_storm off "$ground" "$pml" --mca btl_coopib_ring_threshold 0
            coopib_ring_storm of_two_slots "$ground" "$pml" --mca btl_coopib_ring_threshold 1 --mca btl_coopib_ring_slots 2
            coopib_ring_storm of_small_slots "$ground" "$pml" --mca btl_coopib_ring_threshold 1 --mca btl_coopib_ring_bytes 128
            coopib_ring_storm of_messages_in_many_slots "$ground" "$pml" --mca btl_coopib_ring_threshold 1 --mca btl_coopib_ring_slot_bytes 128
        done
        coopib_ring_storm for_one_peer four_hosts "$pml" --mca btl_coopib_ring_peers 1
        coopib_ring_storm of_two_slots unequal "$pml" --mca btl_coopib_ring_threshold 1 --mca btl_coopib_ring_slots 2
        coopib_ring_storm of_messages_in_many_slots unordered "$pml" --mca btl_coopib_ring_threshold 1 --mca btl_coopib_ring_slot_bytes 128
        coopib_ring_storm at_once small "$pml" --mca btl_coopib_ring_threshold 1
        coopib_ring_storm at_once strict "$pml" --mca btl_coopib_ring_threshold 1
        check "ring_with_a_broken_slot.$pml" says_that_a_slot_is_broken "$pml"
        check "ring_counts.on.$pml" coopib_pair "$pml" "$rings" on
        check "ring_counts.off_by_threshold.$pml" coopib_pair "$pml" --mca btl_coopib_ring_threshold 0 "$rings" off
        check "ring_counts.off_by_peers.$pml" coopib_pair "$pml" --mca btl_coopib_ring_peers 0 "$rings" off
    done
}

# --- writes that land out of order -------------------------------------------------------------------------------------

unordered() { # PML [MPIRUN ARGUMENT…]
    local options np
    coopib_ground unordered
    limit=60 on_subnet "${options[@]}" -- mpirun -np "$np" --oversubscribe --mca pml "$1" --mca btl coopib,self \
        --mca btl_coopib_ring_threshold 1 --mca mpi_yield_when_idle 1 "${@:2}"
}

# Without protection, messages of several packets arrive damaged in a ring: the tail, which tells that a message is there, may land
# before the packet with the message's header. With many slots, most messages land in memory that has not been used, where a missing
# header is noticed. In used memory an old header is taken, and the storm finds wrong bytes or a missing message.
damage_is_seen() { # PML
    local output status=0
    output=$(unordered "$1" --mca btl_coopib_ring_in_order yes --mca btl_coopib_ring_slots 512 "$storm" --seed 13 --messages 600 --stall 10 2>&1) ||
        status=$?
    echo "$output"
    [ "$status" != 0 ] && [ "$status" != 124 ] && grep -qE "^A message arrived damaged|^storm: (FAILED|NO PROGRESS)" <<<"$output"
}

coopib_order_of_bytes() {
    local pml
    for pml in ob1 coop; do
        check "site_15.storm_where_writes_land_out_of_order.$pml" unordered "$pml" "$storm" --seed 13 --messages 600
        check "site_15.damage_is_seen_where_order_is_taken_for_granted.$pml" damage_is_seen "$pml"
        check "site_15.long_messages_go_by_a_ring_where_writes_land_in_order.$pml" coopib_pair "$pml" "$rings" on 8000
        check "site_15.long_messages_go_by_no_ring_where_order_is_denied.$pml" coopib_pair "$pml" --mca btl_coopib_ring_in_order no "$rings" not 8000
        check "site_15.long_messages_go_by_no_ring_where_packets_land_out_of_order.$pml" unordered "$pml" "$rings" not 8000
        check "site_15.short_messages_go_by_a_ring_where_packets_land_out_of_order.$pml" unordered "$pml" "$rings" on 2000
    done
}

# --- receive buffers ---------------------------------------------------------------------------------------------------

# Without shared receive queues every message needs a credit, so the receiver is always ready (no RNR), however few buffers it has.
credits_keep_rnr_away() { # PML
    local trace=$results/log/receives.trace times
    limit=60 on_subnet --hosts 2 --hcas 2 --profile nosrq --trace-to "$trace" -- mpirun -np 2 --oversubscribe --mca pml "$1" --mca btl coopib,self \
        --mca mpi_yield_when_idle 1 --mca btl_coopib_receives 16 --mca btl_coopib_ring_threshold 0 "$rings" off || return 1
    grep -q "process joined" "$trace" || { echo "nothing was traced"; return 1; }
    times=$(grep -c "receiver not ready" "$trace")
    rm -f "$trace"
    echo "receiver not ready: $times times"
    [ "$times" = 0 ]
}

# flood_job PML RANKS [OPTION of the subnet…] -- [MPIRUN ARGUMENT…] -- ARGUMENT… of flood: senders that do not wait, a receiver that computes.
flood_job() {
    local pml=$1 ranks=$2 options=() extra=()
    shift 2
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    while [ "$1" != -- ]; do extra+=("$1"); shift; done
    shift
    limit=60 on_subnet "${options[@]}" -- mpirun -np "$ranks" --oversubscribe --mca pml "$pml" --mca btl coopib,self \
        --mca mpi_yield_when_idle 1 "${extra[@]}" "$flood" "$@"
}

# The same, whose receiver has to copy early messages in one of several jobs: how far one rail gets ahead of the other depends on the machine.
flood_that_copies() {
    local _
    for _ in 1 2 3 4 5 6; do
        flood_job "$@" >"$log.job" 2>&1 || { cat "$log.job"; return 1; }
        cat "$log.job"
        grep -q '^[1-9][0-9]* early messages were copied' "$log.job" && return 0
    done
    return 1
}

coopib_receives() {
    local pml no_rings=(--mca btl_coopib_ring_threshold 0)
    for pml in ob1 coop; do
        check "site_02.early_messages_leave_room_for_the_first.two_rails_of_one_queue.$pml" flood_that_copies "$pml" 2 --hosts 2 --lmc 1 -- "${no_rings[@]}" -- 20000 2000 1
        check "site_02.early_messages_leave_room_for_the_first.two_hcas.$pml" flood_job "$pml" 4 --hosts 4 --hcas 2 -- "${no_rings[@]}" -- 5000 2000 1
        check "site_02.early_messages_leave_room_for_the_first.many_senders_with_rings.$pml" flood_job "$pml" 19 --hosts 3 --hcas 2 -- -- 500 2000 1
        check "site_02.early_messages_leave_room_for_the_first.few_receives.$pml" flood_job "$pml" 2 --hosts 2 --hcas 2 --lmc 1 -- "${no_rings[@]}" --mca btl_coopib_receives 16 -- 5000 2000 0
        check "site_02.early_messages_leave_room_for_the_first.slow_rail.$pml" flood_job "$pml" 2 --hosts 2 --hcas 2 --rate 10MB/s,250MB/s -- "${no_rings[@]}" \
            --mca btl_coopib_small_policy round_robin -- 4000 2000 0
        check "receives.credits_keep_rnr_away.$pml" credits_keep_rnr_away "$pml"
        coopib_ring_storm off_few_receives nosrq "$pml" --mca btl_coopib_ring_threshold 0 --mca btl_coopib_receives 16 --mca btl_coopib_send_depth 4
        coopib_ring_storm off_few_receives one_rail "$pml" --mca btl_coopib_ring_threshold 0 --mca btl_coopib_receives 16
    done
}

# --- bad input --------------------------------------------------------------------------------------------------------

two_by_two() { on_subnet --hosts 2 --hcas 2 -- "$@"; }

# OUTPUT must contain LINE exactly TIMES times.
has_line() { # OUTPUT TIMES LINE
    local found
    found=$(grep -cFx -- "$3" <<<"$1")
    [ "$found" = "$2" ] || { echo "expected $2 times, found $found times: $3"; return 1; }
}

# The job must end, and exactly one message must name the parameter, its value and the permitted values.
says_what_is_wrong() { # PARAMETER VALUE ALLOWED [MPIRUN ARGUMENT…]
    local name=$1 value=$2 allowed=$3 output
    shift 3
    output=$(limit=60 ends_with_an_error two_by_two mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,self \
        --mca "btl_coopib_$name" "$value" "$@" "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 1 "  Parameter: btl_coopib_$name" && has_line "$output" 1 "  Value:     $value" && has_line "$output" 1 "  Allowed:   $allowed"
}

# Parameters that depend on the rails are checked when these are open: each process may report the error then.
says_what_does_not_fit() { # PARAMETER VALUE ALLOWED
    local output
    output=$(limit=60 ends_with_an_error two_by_two mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,self \
        --mca "btl_coopib_$1" "$2" "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    grep -qFx "  Parameter: btl_coopib_$1" <<<"$output" && grep -qFx "  Value:     $2" <<<"$output" && grep -qFx "  Allowed:   $3" <<<"$output"
}

named_without_hca() {
    local output
    output=$(time_limit 60 mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,vader,self "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 1 "  Reason: there is no HCA" && has_line "$output" 1 "done"
}

not_named_without_hca() {
    local output
    output=$(time_limit 60 mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl "$1" "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    [ "$output" = "done" ]
}

# The memory limit that the message asks for must suffice, together with the large messages of ring: 2 MiB on each HCA.
says_how_much_memory() {
    local output needed
    output=$(limit=60 ends_with_an_error on_subnet --hosts 2 --hcas 2 --memlock 1048576 -- mpirun -np 2 --oversubscribe --mca pml ob1 \
        --mca btl coopib,self "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    needed=$(sed -n 's/^  Needed:    \([0-9]*\) bytes .*/\1/p' <<<"$output")
    [[ $needed =~ ^[0-9]+$ ]] || { echo "not one number: '$needed'"; return 1; }
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 --memlock $((needed + (4 << 20))) -- mpirun -np 2 --oversubscribe --mca pml ob1 \
        --mca btl coopib,self "$ring" 2>&1)
    echo "$output"
    [ "$output" = "done" ]
}

coopib_bad_input() {
    local all='binding, round_robin, window_round_robin, weighted_round_robin, shortest_queue'
    check bad_input.interface_that_is_not_there says_what_is_wrong if_include nosuch0 "coop0, coop1"
    check bad_input.port_that_is_not_there says_what_is_wrong if_exclude coop1:7 "coop0, coop1"
    check bad_input.include_and_exclude says_what_is_wrong if_exclude coop1 "empty if if_include is set" --mca btl_coopib_if_include coop0
    check bad_input.unknown_policy says_what_is_wrong large_policy fastest \
        "$all, even_striping, weighted_striping, adaptive_striping, bss, epc"
    check bad_input.site_03_pairing says_what_is_wrong pairing fastest \
        "rate, position, or a list such as mlx5_0=1,mlx5_1:2=2: HCA or HCA:port, and the number of its plane, 0..9999"
    check bad_input.site_03_pairing_of_an_hca_that_is_not_there says_what_is_wrong pairing coop0=1,coop9=1 "the HCAs of this host: coop0, coop1"
    check bad_input.small_messages_are_not_striped says_what_is_wrong small_policy even_striping "$all"
    check bad_input.alpha says_what_is_wrong alpha 101 "1..100 percent"
    check bad_input.batch_above_paths says_what_is_wrong bss_batch 3 "0..2 (btl_coopib_bss_paths)" --mca btl_coopib_bss_paths 2
    check bad_input.weights_that_are_no_numbers says_what_is_wrong weights 1,x "whole numbers 1..1000000, one for each rail, separated by commas"
    check bad_input.more_weights_than_num_rails says_what_is_wrong weights 1,2,3 "at most 2 weights (btl_coopib_num_rails)" --mca btl_coopib_num_rails 2
    check bad_input.balance_without_apm says_what_is_wrong apm_balance 1 "0 if btl_coopib_apm is off or btl_coopib_failover is 0"
    check bad_input.more_paths_than_num_rails says_what_is_wrong bss_paths 3 "0..2 (btl_coopib_num_rails)" --mca btl_coopib_num_rails 2
    check bad_input.batch_above_num_rails says_what_is_wrong bss_batch 3 "0..2 (btl_coopib_num_rails)" --mca btl_coopib_num_rails 2
    check bad_input.max_send_size says_what_is_wrong max_send_size 100 "256..1048576 bytes"
    check bad_input.eager_limit_above_max_send_size says_what_is_wrong eager_limit 16513 "at most btl_coopib_max_send_size, 16512 bytes"
    check bad_input.max_reads says_what_is_wrong max_reads 256 "0..255 reads"
    check bad_input.ring_of_one_slot says_what_is_wrong ring_slots 1 "2..4096 slots"
    check bad_input.ring_messages_too_short says_what_is_wrong ring_bytes 127 "128..131072 bytes"
    check bad_input.ring_messages_too_long says_what_is_wrong ring_bytes 131073 "128..131072 bytes"
    check bad_input.ring_slots_too_small says_what_is_wrong ring_slot_bytes 127 "128..131072 bytes"
    check bad_input.ring_slots_too_large says_what_is_wrong ring_slot_bytes 131073 "128..131072 bytes"
    check bad_input.ring_in_order says_what_is_wrong ring_in_order maybe "auto, yes, no"
    check bad_input.ring_threshold says_what_is_wrong ring_threshold -1 "0..1048576 messages"
    check bad_input.ring_peers says_what_is_wrong ring_peers 1025 "0..1024 peers"
    check bad_input.service_level says_what_is_wrong service_level 16 "0..15"
    check bad_input.traffic_class says_what_is_wrong traffic_class 256 "0..255"
    check bad_input.gid_index says_what_is_wrong gid_index -2 "-1..255"
    check bad_input.gid_that_is_not_there says_what_is_wrong gid_index 3 "-1, or where a port here has a GID (coop0:1: 0; coop1:1: 0)"
    check bad_input.pkey_of_no_partition says_what_is_wrong pkey 0x8000 "0, or 16 bits of which the lower 15 are not 0"
    check bad_input.pkey_of_17_bits says_what_is_wrong pkey 65536 "0..65535"
    check bad_input.pkey_that_no_port_has says_what_is_wrong pkey 0x8001 "the P_Keys of a port here (coop0:1: 0xffff; coop1:1: 0xffff)"
    check bad_input.weights_for_other_rails says_what_does_not_fit weights 1,2,3 "2 weights, one for each rail"
    check bad_input.more_paths_than_rails says_what_does_not_fit bss_paths 3 "0..2 (rails to this peer)"
    check bad_input.batch_above_rails says_what_does_not_fit bss_batch 3 "0..2 (rails to this peer)"
    check bad_input.named_without_hca named_without_hca
    check bad_input.silent_when_not_named not_named_without_hca vader,self
    check bad_input.silent_when_excluded not_named_without_hca ^coopib,openib
    check bad_input.too_little_locked_memory says_how_much_memory
}

# --- partitions and packet headers ------------------------------------------------------------------------------------------

on_ground() { # GROUND PML [MPIRUN ARGUMENT…]
    local options np
    coopib_ground "$1"
    limit=60 on_subnet "${options[@]}" -- mpirun -np "$np" --oversubscribe --mca pml "$2" --mca btl "${btl:-coopib,self}" --mca mpi_yield_when_idle 1 "${@:3}"
}

# A sentence must name both P_Keys. Then Open MPI ends the job, because no other transport carries messages. One process may be ended
# before it has printed the sentence, but not both.
refuses_by_pkey() { # GROUND RANK_0_SAYS RANK_1_SAYS
    local output said status=0
    output=$(on_ground "$1" ob1 "$ring" 2>&1) || status=$?
    echo "$output"
    said=$(grep -cFx -e "  Reason: $2" -e "  Reason: $3" <<<"$output")
    echo "said $said times"
    [ "$status" != 0 ] && [ "$status" != 124 ] && [ "$said" -ge 1 ] && [ "$said" -le 2 ]
}

goes_by_another_transport() { # GROUND TIMES_SAID
    local output
    output=$(btl=coopib,vader,self on_ground "$1" ob1 --mca btl_coopib_report 1 "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 1 "done" && [ "$(grep -c '^  Reason: ' <<<"$output")" = "$2" ] && ! grep -q '^btl/coopib: rank 0 to rank 1' <<<"$output"
}

# In every process all reliable queue pairs, and all address handles, must have these values.
carries() { # GROUND FIELDS [MPIRUN ARGUMENT…]
    local file=$log.addresses
    rm -f "$file"
    # shellcheck disable=SC2016 # expanded where a rank starts
    WATCH_ADDRESSES=$file on_ground "$1" ob1 "${@:3}" -x WATCH_ADDRESSES sh -c 'LD_PRELOAD=$1:$LD_PRELOAD exec "$2"' sh "$watch_addresses" "$ring" || return 1
    cat "$file"
    [ "$(grep -cxE "rc $2" "$file")" = 2 ] && [ "$(grep -cxE "ah $2" "$file")" = 2 ] && [ "$(wc -l <"$file")" = 4 ]
}

coopib_partitions() {
    local pml both_limited="the P_Key here is 0x0005 (limited member), there 0x0005 (limited member): two limited members of a partition"
    both_limited+=" cannot communicate"
    for pml in ob1 coop; do
        check "site_19.storm_in_a_partition_of_full_members.$pml" on_ground partitions "$pml" --mca btl_coopib_pkey 0x8001 "$storm" --seed 14 --messages 300
        check "site_19.storm_between_full_and_limited_members.$pml" on_ground partitions "$pml" --mca btl_coopib_pkey 0x7fff "$storm" --seed 14 --messages 300
        check "site_19.storm_on_ports_that_demand_a_grh.$pml" on_ground grh "$pml" "$storm" --seed 14 --messages 300
    done
    check site_19.storm_across_subnets on_ground two_subnets ob1 --mca btl_coopib_allow_different_subnets 1 "$storm" --seed 14 --messages 300
    check site_19.subnets_are_crossed_by_a_global_routing_header carries two_subnets "sl 0 tc 0 grh 1 gid 0 pkey 0" \
        --mca btl_coopib_allow_different_subnets 1
    check site_19.subnets_are_not_crossed_unless_that_is_allowed goes_by_another_transport two_subnets 0
    check site_19.default_keys_of_different_partitions_are_refused refuses_by_pkey partitions \
        "the P_Key here is 0xffff (full member), there 0x8001 (full member): these are different partitions" \
        "the P_Key here is 0x8001 (full member), there 0xffff (full member): these are different partitions"
    check site_19.two_limited_members_are_refused refuses_by_pkey limited "$both_limited" "$both_limited"
    check site_19.another_transport_goes_on_where_keys_do_not_match goes_by_another_transport limited 2
    check site_19.key_service_level_and_gid_are_as_given carries two_hcas "sl 5 tc 0 grh 0 gid 0 pkey 0" --mca btl_coopib_service_level 5
    check site_19.key_is_found_by_value carries partitions "sl 0 tc 0 grh 0 gid 0 pkey [12]" --mca btl_coopib_pkey 1
    check site_19.header_has_the_traffic_class carries grh "sl 0 tc 106 grh 1 gid 0 pkey 0" --mca btl_coopib_traffic_class 106
    check site_19.first_gid_of_roce_is_that_of_version_2 carries roce "sl 3 tc 104 grh 1 gid 1 pkey 0" --mca btl_coopib_service_level 3 \
        --mca btl_coopib_traffic_class 104
    check site_19.gid_of_roce_is_as_given carries roce "sl 0 tc 0 grh 1 gid 0 pkey 0" --mca btl_coopib_gid_index 0
}

# --- rails that do not open -----------------------------------------------------------------------------------------------

# Ranks 0 and 1 have three HCAs each. On one side coop1 makes no rail, so rail 1 is missing on both.
without_a_rail() { # RANK [MPIRUN ARGUMENT…]
    local rank=$1
    shift
    # shellcheck disable=SC2016 # expanded where a rank starts
    limit=60 on_subnet --hosts 2 --hcas 3 --rate 250MB/s -- mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,self \
        --mca btl_coopib_report 1 --mca mpi_yield_when_idle 1 "$@" \
        sh -c '[ "$OMPI_COMM_WORLD_RANK" != '"$rank"' ] || export REFUSE_RAIL=coop1; LD_PRELOAD=$1:$LD_PRELOAD exec "$2"' sh "$refuse_rail" "$ring" 2>&1
}

# Of the weights 60, 30, 20 the two of the other rails remain, and each process reports that once.
goes_on_with_the_weights_of_the_others() { # RANK
    local output
    output=$(without_a_rail "$1" --mca btl_coopib_weights 60,30,20 --mca btl_coopib_large_policy weighted_striping) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 2 "  Opened: 2 of 3 rails" && has_line "$output" 1 "done" &&
        [ "$(grep -cE "^  last large message: 1048576 bytes go in 2 stripes on rails .* by fixed weight (75/25|25/75) " <<<"$output")" = 2 ]
}

# No parameter mentions the rails, so nothing is reported. Rails 0 and 2 keep their numbers on both sides.
goes_on_in_silence() {
    local output
    output=$(without_a_rail 1) || { echo "$output"; return 1; }
    echo "$output"
    ! grep -q Opened <<<"$output" && has_line "$output" 1 "done" && [ "$(grep -cE '^  [0-9] +coop' <<<"$output")" = 4 ] &&
        [ "$(grep -cE '^  0 +coop0' <<<"$output")" = 2 ] && [ "$(grep -cE '^  2 +coop2' <<<"$output")" = 2 ]
}

coopib_fewer_rails() {
    check fewer_rails.weights_here goes_on_with_the_weights_of_the_others 0
    check fewer_rails.weights_there goes_on_with_the_weights_of_the_others 1
    check fewer_rails.silent_without_weights goes_on_in_silence
    check fewer_rails.bss_takes_what_there_is without_a_rail 0 --mca btl_coopib_large_policy bss --mca btl_coopib_bss_paths 3 --mca btl_coopib_bss_batch 3
}

# --- report and performance variables ---------------------------------------------------------------------------------

coopib_pair() { # PML PROGRAM [ARGUMENT…]: two ranks with four rails
    local pml=$1
    shift
    limit=60 on_subnet --hosts 2 --hcas 2 --lmc 1 --rate 250MB/s -- mpirun -np 2 --oversubscribe --mca pml "$pml" --mca btl coopib,self \
        --mca mpi_yield_when_idle 1 "$@"
}

# Four lines for each of the two peers, with an HCA, a port, path bits and a positive byte count; then the last decisions.
report_has_each_rail() { # PML REASON
    local output rail
    output=$(coopib_pair "$1" --mca btl_coopib_report 1 "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 1 "btl/coopib: rank 0 to rank 1" && has_line "$output" 1 "btl/coopib: rank 1 to rank 0" || return 1
    for rail in 0 1 2 3; do
        [ "$(grep -cE "^  $rail     coop[01]  +1 +[01] +0 +[1-9][0-9]* +[0-9]+ +[1-9][0-9]* +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+\.[0-9] %\$" <<<"$output")" = 2 ] ||
            { echo "rail $rail is not there twice"; return 1; }
    done
    [ "$(grep -cE '^  waited for the connection: [0-9]+; datagrams sent again: [0-9]+$' <<<"$output")" = 2 ] &&
        [ "$(grep -cE "^  written into the peer's ring: [0-9]+; messages with nothing but credits: [0-9]+\$" <<<"$output")" = 2 ] &&
        [ "$(grep -cE '^  last small message: [0-9]+ bytes go whole on rail [0-3] \(shortest_queue\): below ' <<<"$output")" = 2 ] &&
        [ "$(grep -cE "^  last large message: [0-9]+ bytes go .*: $2\$" <<<"$output")" = 2 ] &&
        [ "$(grep -cE "^  RDMA operations: [0-9]+ whole, [1-9][0-9]* in stripes: $2\$" <<<"$output")" = 2 ]
}

report_names_peers_on_other_hosts() {
    local output
    output=$(limit=60 on_subnet --hosts 2 --virtual-hosts -- mpirun -np 2 --mca pml ob1 --mca btl coopib,self --mca btl_coopib_report 1 \
        --mca mpi_yield_when_idle 1 "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 1 "btl/coopib: rank 0 to rank 1" && has_line "$output" 1 "btl/coopib: rank 1 to rank 0"
}

# The weights of the rails to a peer add up to 100 %, apart from rounding.
report_weights_are_shares() {
    local output
    output=$(coopib_pair ob1 --mca btl_coopib_report 1 "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    awk '/^  [0-3]     coop/ { sum += $(NF - 1) } END { exit !(sum > 199 && sum < 201) }' <<<"$output"
}

# Two processes on each of two hosts. With policy binding a process uses one rail to a peer. To peers on the other host, the two
# processes of a host use different HCAs. Within a host a port is paired with itself, so both processes use the same HCA.
binding_spreads_a_node() {
    local output
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 --virtual-hosts --slots 2 -- mpirun -np 4 --mca pml ob1 --mca btl coopib,self \
        --mca btl_coopib_small_policy binding --mca btl_coopib_large_policy binding --mca btl_coopib_report 1 --mca mpi_yield_when_idle 1 \
        "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    awk '/^btl.coopib: rank/ { rank = $3; leaves = int(rank / 2) != int($6 / 2) }
        / coop[01] / && $6 > 0 && leaves { if (rank in hca && hca[rank] != $2) exit 1; hca[rank] = $2 }
        END { exit !(length(hca) == 4 && hca[0] != hca[1] && hca[2] != hca[3]) }' <<<"$output"
}

report_is_silent_by_default() {
    local output
    output=$(coopib_pair ob1 "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    [ "$output" = "done" ]
}

coopib_report() {
    check report.each_rail.ob1 report_has_each_rail ob1 "the kind of call is unknown, so the size decides"
    check report.each_rail.coop report_has_each_rail coop "the call is blocking"
    check report.names_peers_on_other_hosts report_names_peers_on_other_hosts
    check report.weights_are_shares report_weights_are_shares
    check report.binding_spreads_the_processes_of_a_node binding_spreads_a_node
    check report.silent_by_default report_is_silent_by_default
    check report.pvars.ob1 coopib_pair ob1 "$pvars" 2 4 reads
    check report.pvars.coop coopib_pair coop "$pvars" 2 4 reads
    check report.pvars_of_one_rail_of_two_hcas coopib_pair ob1 --mca btl_coopib_num_rails 1 "$pvars" 1 1 reads
    check report.pvars_of_full_rails coopib_pair ob1 --mca btl_coopib_send_depth 4 "$pvars" 2 4 rails
}

# --- kinds of calls, for the policy epc -----------------------------------------------------------------------------------

# Two virtual hosts, because within a node pml/coop copies from both sides.
calls() { # PML PROTOCOL [ARGUMENT…] of coopib_kinds
    local pml=$1 protocol=$2
    shift 2
    limit=100 on_subnet --hosts 2 --hcas 2 --lmc 1 --rate 250MB/s --virtual-hosts -- mpirun -np 2 --mca pml "$pml" --mca btl coopib,self \
        --mca pml_coop_protocol "$protocol" --mca btl_coopib_report 1 --mca btl_coopib_striping_threshold 16k --mca mpi_yield_when_idle 1 "$kinds" "$@"
}

coopib_calls() {
    check calls.marked_for_get calls coop hybrid get 4
    check calls.marked_for_put calls coop rput put 4
    check calls.unmarked calls ob1 hybrid unmarked 4
}

# --- order ------------------------------------------------------------------------------------------------------------

# Of 21 short messages 20 have to wait for the slow rail, and the one on the fast rail overtakes them. So of the 8000 messages of
# coopib_stream about 380 arrive ahead of an earlier one. The test requires three quarters of that.
far_ahead() { # PML
    limit=100 on_subnet --hosts 2 --hcas 2 --rate 10MB/s,250MB/s -- mpirun -np 2 --oversubscribe --mca pml "$1" --mca btl coopib,self \
        --mca btl_coopib_small_policy weighted_round_robin --mca btl_coopib_weights 20,1 --mca mpi_yield_when_idle 1 "$results/bin-mpi/coopib_stream" 285
}

coopib_order() {
    local pml
    for pml in ob1 coop; do check "site_36.order.far_ahead.$pml" far_ahead "$pml"; done
}

# --- sweeps -----------------------------------------------------------------------------------------------------------

# Each process must poll the queues of all HCAs before it handles the completions.
queues_are_polled_together() { # PML
    local output
    # shellcheck disable=SC2016 # expanded where a rank starts
    output=$(two_by_two mpirun -np 2 --oversubscribe --mca pml "$1" --mca btl coopib,self --mca mpi_yield_when_idle 1 \
        sh -c 'LD_PRELOAD=$1:$LD_PRELOAD exec "$2" --seed 19 --messages 300' sh "$watch_sweeps" "$storm" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    [ "$(grep -cE '^sweeps: [1-9][0-9]* found something on coop0; of these 0 left coop1 out, 0 read the clock' <<<"$output")" = 2 ]
}

coopib_sweeps() {
    check site_29.queues_are_polled_together.ob1 queues_are_polled_together ob1
    check site_29.queues_are_polled_together.coop queues_are_polled_together coop
}

# --- the longest operations -------------------------------------------------------------------------------------------

# With a single rail, so that striping does not shorten the operations.
longest_of() { # PROFILE LIMIT PML [MPIRUN ARGUMENT…]
    local profile=$1 expected=$2 pml=$3
    shift 3
    limit=60 on_subnet --hosts 2 --profile "$profile" --virtual-hosts -- mpirun -np 2 --mca pml "$pml" --mca btl coopib,self \
        --mca osc_rdma_btls coopib --mca mpi_yield_when_idle 1 "$@" "$longest" "$expected"
}

coopib_longest() {
    local port_takes=2097152 any=1073741824 without_get=send,put,atomics,fetching-atomics chunk=(--mca pml_coop_rdma_chunk 1g)
    check site_22.longer_than_a_port_takes.ob1_get longest_of small $port_takes ob1 --mca osc rdma
    check site_22.longer_than_a_port_takes.ob1_put longest_of small $port_takes ob1 --mca osc pt2pt --mca btl_coopib_flags $without_get
    check site_22.longer_than_a_port_takes.coop_get longest_of small $port_takes coop --mca osc rdma --mca pml_coop_protocol rget "${chunk[@]}"
    check site_22.longer_than_a_port_takes.coop_put longest_of small $port_takes coop --mca osc rdma --mca pml_coop_protocol rput "${chunk[@]}"
    check site_32.limits_above_4_gib_are_cut longest_of default $any ob1 --mca osc rdma --mca btl_coopib_get_limit 8589934592 \
        --mca btl_coopib_put_limit 8589934592
    check site_32.limits_of_0_are_the_most_there_is longest_of default $any ob1 --mca osc rdma --mca btl_coopib_get_limit 0 \
        --mca btl_coopib_put_limit 0
    check site_32.smaller_limits_stay longest_of default 100000 ob1 --mca osc rdma --mca btl_coopib_get_limit 100000 --mca btl_coopib_put_limit 100000
}

# --- fork() -----------------------------------------------------------------------------------------------------------

forks_on() { # strict | copying PML [MPIRUN ARGUMENT…]
    local subnet=(--hosts 2 --hcas 2 --rate 250MB/s) pml=$2
    [ "$1" != strict ] || subnet+=(--strict-fork)
    shift 2
    limit=60 on_subnet "${subnet[@]}" -- mpirun -np 2 --oversubscribe --mca pml "$pml" --mca btl coopib,self --mca mpi_yield_when_idle 1 "$@" "$forks"
}

without_fork_init() { # auto | on
    # shellcheck disable=SC2016 # expanded where a rank starts
    limit=60 two_by_two mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,self --mca mpi_yield_when_idle 1 --mca btl_coopib_fork "$1" \
        sh -c 'LD_PRELOAD=$1:$LD_PRELOAD exec "$2"' sh "$refuse_fork" "$forks" 2>&1
}

# Open MPI prints the warning; the daemon of 4.1.4 may fail to print it and only report that.
warns_of_a_fork() {
    local output
    output=$(without_fork_init auto) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 1 "all right" && grep -qE 'involving a call to the|in file .*show_help' <<<"$output"
}

is_not_used_without_fork_init() {
    local output
    output=$(ends_with_an_error without_fork_init on) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 2 "  Reason: cannot protect registered memory from children of fork(): ibv_fork_init: Function not implemented"
}

coopib_forks() {
    local pml
    for pml in ob1 coop; do
        check "site_21.fork_and_system_in_a_job.$pml" forks_on copying "$pml"
        check "site_21.fork_and_system_in_a_job.not_copied.$pml" forks_on strict "$pml"
    done
    check site_21.fork_and_system_in_a_job.not_copied.coop_interrupts forks_on strict coop --mca pml_coop_async interrupt
    check site_21.fork_that_is_not_safe.auto warns_of_a_fork
    check site_21.fork_that_is_not_safe.on is_not_used_without_fork_init
    check site_21.bad_input says_what_is_wrong fork maybe "auto, on, off"
}

# --- memory -----------------------------------------------------------------------------------------------------------

# Nine hosts, so eight peers. The send queues are short, because the software subnet needs 1.5 KiB for each entry.
memory_of_a_peer() { # MOST_KIB [OPTION of the subnet…]
    local most=$1
    shift
    limit=100 on_subnet --hosts 9 "$@" --virtual-hosts -- mpirun -np 9 --oversubscribe --mca pml ob1 --mca btl coopib,self \
        --mca btl_coopib_send_depth 4 --mca mpi_yield_when_idle 1 "$results/bin-mpi/coopib_memory" "$most"
}

coopib_memory() {
    check memory.of_a_peer.one_rail memory_of_a_peer 28
    check memory.of_a_peer.four_rails memory_of_a_peer 76 --hcas 2 --lmc 1
}

# --- one-sided communication ------------------------------------------------------------------------------------------

# Two hosts of one rank each: Open MPI's osc/rdma leaves put, get and atomic operations to the transport, also on a rank's own window.
one_sided_says() { # PML [MPIRUN ARGUMENT…]
    local pml=$1 output
    shift
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 --virtual-hosts -- mpirun -np 2 --mca pml "$pml" --mca btl coopib,self --mca osc rdma \
        --mca osc_rdma_btls coopib --mca btl_coopib_report 1 "$@" "$one_sided" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 1 "one-sided: all right" && has_line "$output" 1 "btl/coopib: rank 0 to rank 0" &&
        has_line "$output" 1 "btl/coopib: rank 0 to rank 1"
}

# Rank 1 has no rail on coop0, the HCA that each process names for atomic operations. An update over coop1 could be lost.
says_that_there_are_no_atomics() {
    local output status=0
    # shellcheck disable=SC2016 # expanded where a rank starts
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 --virtual-hosts -- mpirun -np 2 --mca pml ob1 --mca btl coopib,self --mca osc rdma \
        --mca osc_rdma_btls coopib sh -c '[ "$OMPI_COMM_WORLD_RANK" != 1 ] || export REFUSE_RAIL=coop0; LD_PRELOAD=$1:$LD_PRELOAD exec "$2"' \
        sh "$refuse_rail" "$one_sided" 2>&1) || status=$?
    echo "$output"
    [ $status != 0 ] && [ $status != 124 ] && grep -q '^A process cannot do atomic operations on the memory of another one' <<<"$output" &&
        grep -qx '  HCA:  number 0 of the peer, counted from 0' <<<"$output"
}

coopib_one_sided() {
    check site_17.update_that_could_be_lost_is_refused says_that_there_are_no_atomics
    check one_sided.ob1 one_sided_says ob1
    check one_sided.coop one_sided_says coop
}

# --- puts of our other components, through the extension -----------------------------------------------------------------

riders_of() { # GROUND RAILS PML
    on_ground "$1" "$3" "$puts" riders "$2"
}

# Packets and acknowledgements are lost, so that HCAs send again, and riders with them.
riders_despite_losses() { # PML
    local trace=$log.trace times kind at=0
    for kind in drop lose-ack corrupt drop lose-ack rnr; do echo "after $((at += 150)) messages fault all $kind --count 3"; done >"$log.scenario"
    limit=60 on_subnet --hosts 2 --hcas 2 --rate 250MB/s,100MB/s --latency 20us --scenario "$log.scenario" --trace-to "$trace" -- \
        mpirun -np 2 --oversubscribe --mca pml "$1" --mca btl coopib,self --mca mpi_yield_when_idle 1 --mca btl_coopib_timeout 10 "$puts" riders 2 ||
        return 1
    times=$(grep -c "  retry QP" "$trace")
    rm -f "$trace"
    echo "sent again: $times times"
    [ "$times" -ge 10 ]
}

# The program must notice packets that overtake the data, and the end of a write before its beginning.
wrong_bytes_are_seen() { # GROUND ARGUMENT of coopib_puts
    local output
    output=$(ends_with_an_error on_ground "$1" ob1 "$puts" "$2" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    grep -qE '^rank [01]: put [0-9]+ of [0-9]+ bytes: byte [0-9]+ is ' <<<"$output"
}

coopib_puts() {
    local pml of_ground
    for pml in ob1 coop; do
        for of_ground in one_rail:1 two_hcas:2 four_rails:4 unequal:3 roce:2 nosrq:2 small:2 unordered:2; do
            check "puts.riders_come_after_the_data.${of_ground%:*}.$pml" riders_of "${of_ground%:*}" "${of_ground#*:}" "$pml"
        done
        check "puts.riders_come_after_the_data.despite_losses.$pml" riders_despite_losses "$pml"
        check "puts.riders_wait_for_room_and_credits.$pml" on_ground nosrq "$pml" --mca btl_coopib_send_depth 4 --mca btl_coopib_receives 16 "$puts" riders 2
        check "puts.whole_ones_end_with_their_last_word.one_rail.$pml" on_ground one_rail "$pml" "$puts" tails
        check "puts.whole_ones_end_with_their_last_word.unequal.$pml" on_ground unequal "$pml" "$puts" tails
        check "puts.reads_end_after_the_puts_before_them.$pml" on_ground two_hcas "$pml" "$puts" reads
        check "puts.writes_land_in_order.$pml" on_ground two_hcas "$pml" "$puts" order yes
        check "puts.writes_land_out_of_order.$pml" on_ground unordered "$pml" "$puts" order no
    done
    check puts.riders_come_after_the_data.with_interrupts on_ground unequal coop --mca pml_coop_async interrupt "$puts" riders 3
    check puts.order_of_writes_is_as_given.yes on_ground unordered ob1 --mca btl_coopib_ring_in_order yes "$puts" order yes
    check puts.order_of_writes_is_as_given.no on_ground two_hcas ob1 --mca btl_coopib_ring_in_order no "$puts" order no
    check puts.message_that_overtakes_the_data_is_seen wrong_bytes_are_seen unequal messages
    check puts.end_of_a_striped_put_that_is_early_is_seen wrong_bytes_are_seen unequal striped_tails
    check puts.end_of_a_whole_put_that_is_early_is_seen wrong_bytes_are_seen unordered tails
}

part_coopib() {
    # shellcheck disable=SC2034 # by_turns is for lib/report.sh
    local pml policy ground by_turns=yes
    log=$results/log/coopib.build.log
    prepare_storm >"$log" 2>&1 || { report_fail coopib.build; return; }
    coopib_bad_input
    coopib_partitions
    coopib_fewer_rails
    coopib_report
    coopib_calls
    coopib_order
    coopib_sweeps
    coopib_longest
    coopib_forks
    coopib_memory
    coopib_rings
    coopib_order_of_bytes
    coopib_receives
    coopib_one_sided
    coopib_puts
    for pml in ob1 coop; do
        for policy in binding round_robin window_round_robin weighted_round_robin shortest_queue even_striping weighted_striping adaptive_striping bss epc; do
            coopib_storm four_rails "$pml" "$policy" --
        done
        for ground in one_rail two_hcas lmc1 lmc2 unequal slow roce nosrq small noapm ports four_hosts; do
            coopib_storm "$ground" "$pml" epc --
            [ "$long" = no ] || for policy in even_striping adaptive_striping bss round_robin; do coopib_storm "$ground" "$pml" "$policy" --; done
        done
    done
}
