# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Unmodified programs from Debian, which print or check what they received. --long: everything 20 times; after each round no
# process or file may be left over.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

two=(--hosts 2 --hcas 2)
roce=(--hosts 2 --hcas 2 --link-layer roce)

# test_on NAME OPTION… -- COMMAND…: runs a command on a subnet of its own.
test_on() {
    local name=$1
    shift
    check "$name$round" on_subnet "$@"
}

# pair NAME OPTION… -- PROGRAM ARGUMENT…: runs a server and a client of the program.
pair() {
    local name=$1 options=()
    shift
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    test_on "$name" "${options[@]}" -- "$here/lib/pair.sh" "$@"
}

# passed NAME: true if the last test was asked for and has not failed.
passed() {
    selected "$1$round" && ! time_is_up && ! tail -n 1 "$log" | grep -q '^(exit status'
}

# says NAME PATTERN TIMES: the log of the last test must contain that many lines that match.
says() {
    local found
    passed "$1" || return 0
    found=$(grep -cE "$2" "$log")
    [ "$found" != "$3" ] || return 0
    echo "'$2' is there $found times, not $3" >>"$log"
    report_fail "$1.says$round"
}

# --- ibverbs-utils ----------------------------------------------------------------------------------------------------

devinfo_says() { # OPTION… -- WORDS…: 'ibv_devinfo -v' prints each of WORDS, with blanks squeezed
    local options=() words status=0
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    on_subnet "${options[@]}" -- ibv_devinfo -v | tr -s ' \t' ' ' | tee "$log.devinfo"
    for words in "$@"; do
        grep -qE "$words" "$log.devinfo" || { echo "not there: $words" && status=1; }
    done
    return $status
}

ibverbs_utils() {
    local way name
    check "devinfo.two_hcas$round" devinfo_says "${two[@]}" --lmc 1 --host h1 -- \
        'hca_id: coop0' 'hca_id: coop1' 'transport: InfiniBand' 'vendor_id: 0x02c9' 'vendor_part_id: 4099' 'phys_port_cnt: 1$' \
        'node_guid: [0-9a-f:]+' 'max_qp: [0-9]{4,}' 'max_sge: 16' 'max_qp_rd_atom: 16' 'max_srq: [1-9]' 'AUTO_PATH_MIG' \
        'atomic_cap: ATOMIC_HCA' 'state: PORT_ACTIVE' 'max_mtu: 4096' 'active_mtu: 4096' 'port_lid: 6$' 'port_lid: 8$' \
        'port_lmc: 0x01' 'sm_lid: 1$' 'link_layer: InfiniBand' 'max_msg_sz: 0x40000000' 'phys_state: LINK_UP' \
        'GID\[ 0\]: fe80:0000:0000:0000:'
    check "devinfo.two_ports$round" devinfo_says --hosts 1 --ports 2 -- 'phys_port_cnt: 2' 'port: 2' 'port_lid: 1$' 'port_lid: 2$'
    check "devinfo.roce$round" devinfo_says "${roce[@]}" -- 'link_layer: Ethernet' 'port_lid: 0$' 'RoCE v1' 'RoCE v2'
    check "devinfo.no_srq$round" devinfo_says --profile nosrq -- 'max_srq: 0'
    check "devinfo.small$round" devinfo_says --profile small -- 'max_qp_rd_atom: 1$' 'max_sge: 4$'
    test_on devinfo.devices "${two[@]}" -- ibv_devices
    says devinfo.devices '^ +coop[01]' 2

    for way in '' -e -N; do
        name=rc_pingpong${way:+_}${way#-}
        # shellcheck disable=SC2086 # none or one
        pair "pingpong.$name" "${two[@]}" -- ibv_rc_pingpong -n 200 -c $way
        # shellcheck disable=SC2086 # none or one
        pair "pingpong.$name.roce" "${roce[@]}" -- ibv_rc_pingpong -g 1 -n 200 -c $way
    done
    pair pingpong.rc_pingpong_t "${two[@]}" -- ibv_rc_pingpong -n 200 -c -t
    pair pingpong.rc_pingpong_long "${two[@]}" -- ibv_rc_pingpong -n 10 -c -s 5000000
    for way in '' -e; do
        for name in ud srq uc; do
            # shellcheck disable=SC2086 # none or one
            pair "pingpong.${name}_pingpong${way:+_}${way#-}" "${two[@]}" -- ibv_${name}_pingpong -n 200 -c $way
        done
    done
    for name in ud srq uc; do pair "pingpong.${name}_pingpong.roce" "${roce[@]}" -- ibv_${name}_pingpong -g 1 -n 200 -c; done
    pair pingpong.far_over_a_fat_tree --fat-tree 2,2,1 --lmc 1 --rate 500MB/s --latency 1us -- ibv_rc_pingpong -n 200 -c
    test_on asyncwatch.a_port_goes_down_and_up "${two[@]}" -- "$here/clients/watched_port.sh"
}

# --- perftest ---------------------------------------------------------------------------------------------------------

# perf NAME SIZE MESSAGES PROGRAM ARGUMENT…: the program must report the number of messages of that size.
perf() {
    local name=perftest.$1 size=$2 messages=$3
    shift 3
    pair "$name" "${two[@]}" -- "$1" -s "$size" -n "$messages" "${@:2}"
    says "$name" "^ $size +[0-9]+ +[0-9]+\." 1
}

perftest() {
    local verb kind
    for verb in send write read; do
        for kind in lat bw; do
            perf "${verb}_$kind" 8 100 "ib_${verb}_$kind"
            perf "${verb}_${kind}_long" 1000000 20 "ib_${verb}_$kind"
        done
    done
    # Only this program runs with all sizes without --long, because perftest calibrates its clock again for each size (0.2 s).
    pair perftest.write_bw_all_sizes "${two[@]}" -- ib_write_bw -a -n 5
    says perftest.write_bw_all_sizes '^ [0-9]+ +5 +[0-9]+\.' 23
    for kind in lat bw; do
        perf "send_${kind}_events" 8 100 "ib_send_$kind" -e
        perf "send_${kind}_ud" 1024 100 "ib_send_$kind" -c UD
        perf "send_${kind}_uc" 1024 100 "ib_send_$kind" -c UC
        perf "send_${kind}_srq" 8 100 "ib_send_$kind" --use-srq -r 100
        perf "write_${kind}_uc" 8 100 "ib_write_$kind" -c UC
        perf "write_${kind}_inline" 64 100 "ib_write_$kind" -I 64
        perf "atomic_${kind}_fetch_and_add" 8 100 "ib_atomic_$kind" -A FETCH_AND_ADD
        perf "atomic_${kind}_compare_and_swap" 8 100 "ib_atomic_$kind" -A CMP_AND_SWAP
        perf "read_${kind}_events" 4096 100 "ib_read_$kind" -e
        perf "atomic_${kind}_events" 8 100 "ib_atomic_$kind" -e
    done
    # Messages of more than 32 KiB are executed by the engine's thread. Is the order of events still right?
    perf send_lat_events_64k 65536 200 ib_send_lat -e
    perf send_lat_events_long 1000000 20 ib_send_lat -e
    perf send_bw_events_64k 65536 200 ib_send_bw -e
    perf send_bw_events_long 1000000 20 ib_send_bw -e
    perf read_lat_events_long 1000000 20 ib_read_lat -e
    perf read_bw_events_long 1000000 20 ib_read_bw -e
    pair perftest.send_lat_events_far "${two[@]}" --rate 500MB/s --latency 5us -- ib_send_lat -e -s 65536 -n 200
    says perftest.send_lat_events_far '^ 65536 +200 +[0-9]+\.' 1
    perf send_bw_ud_events 1024 100 ib_send_bw -c UD -e
    perf send_bw_8_qps 65536 50 ib_send_bw -q 8
    perf write_bw_8_qps 65536 50 ib_write_bw -q 8
    perf read_bw_8_qps 65536 50 ib_read_bw -q 8
    perf send_bw_post_lists 4096 100 ib_send_bw -l 4
    perf write_bw_both_ways 65536 100 ib_write_bw -b
    perf send_bw_both_ways 65536 100 ib_send_bw -b
    pair perftest.write_bw_roce "${roce[@]}" -- ib_write_bw -x 1 -n 100
    pair perftest.write_bw_second_hca "${two[@]}" -- ib_write_bw -d coop1 -n 100
    [ "$long" = yes ] || return 0
    for verb in send write read; do
        for kind in lat bw; do
            pair "perftest.${verb}_${kind}_all_sizes" "${two[@]}" -- "ib_${verb}_$kind" -a -n 5
            says "perftest.${verb}_${kind}_all_sizes" '^ [0-9]+ +5 +[0-9]+\.' 23
        done
    done
}

# --- Open MPI: ob1 over openib ------------------------------------------------------------------------------------------

mpi_common=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -x COOP_TEST_RUN)
openib=(--mca pml ob1 --mca btl 'openib,self' --mca btl_openib_allow_ib 1 --mca btl_openib_warn_default_gid_prefix 0)

# storm NAME RANKS OPTION… -- ARGUMENT…: OPTION for the subnet, ARGUMENT for mpirun. The storm checks every byte.
storm() {
    local name=$1 ranks=$2 options=()
    shift 2
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    test_on "$name" "${options[@]}" --counters -- mpirun -n "$ranks" "${mpi_common[@]}" \
        "$@" "$storm" --seed 7 --messages 1000
    says "$name" '^storm: [0-9]+ messages received and checked' 1
}

# carried NAME PORT BYTES: the port must have sent that many bytes in the last test.
carried() {
    passed "$1" || return 0
    ! awk -v port="$2" -v least="$3" '$1 == port && $2 == "active" && $5 >= least {found = 1} END {exit !found}' "$log" || return 0
    echo "$2 has not sent $3 bytes" >>"$log"
    report_fail "$1.carried_by_$2$round"
}

openib_survives_a_cut_lid() {
    local trace=$log.trace
    # The base LID of h0 goes down; both ends migrate to the other LID.
    echo 'after 300 messages lid 0x2 down' >"$log.scenario"
    on_subnet --hosts 2 --lmc 1 --scenario "$log.scenario" --trace-to "$trace" -- mpirun -n 2 "${mpi_common[@]}" "${openib[@]}" \
        --mca btl_openib_max_lmc 0 --mca btl_openib_enable_apm_over_lmc 1 --mca btl_openib_ib_timeout 12 \
        "$storm" --seed 7 --messages 1000 || return 1
    grep -v ' message ' "$trace"
    [ "$(grep -c 'path migrated QP .* LID 0x5 ' "$trace")" -gt 0 ] && [ "$(grep -c 'path migrated QP .* LID 0x3 ' "$trace")" -gt 0 ] &&
        ! grep -E 'retry exceeded|migration failed' "$trace"
}

openib() {
    local ranks
    storm openib.one_hca 2 --hosts 2 -- "${openib[@]}"
    storm openib.two_hcas 2 "${two[@]}" -- "${openib[@]}"
    carried openib.two_hcas h0/coop0/1 1000000
    carried openib.two_hcas h1/coop1/1 1000000
    storm openib.one_hca_four_ranks 4 --hosts 2 -- "${openib[@]}"
    storm openib.two_hcas_four_ranks 4 "${two[@]}" -- "${openib[@]}"
    storm openib.no_srq 2 "${two[@]}" --profile nosrq -- "${openib[@]}" \
        --mca btl_openib_receive_queues P,128,256,192,128:P,65536,256,192,128
    storm openib.limited 2 "${two[@]}" --rate 500MB/s --latency 2us -- "${openib[@]}"
    storm openib.several_lids 2 "${two[@]}" --lmc 1 -- "${openib[@]}"
    storm openib.virtual_hosts 4 "${two[@]}" --virtual-hosts --slots 2 -- --mca pml ob1 --mca btl openib,vader,self \
        "${openib[@]:6}"
    says openib.virtual_hosts ' storm +h0 ' 2
    says openib.virtual_hosts ' storm +h1 ' 2
    carried openib.virtual_hosts h1/coop1/1 100000
    check "openib.virtual_hosts_share_no_folder$round" virtual_hosts_share_no_folder
    check "openib.apm_over_lmc_survives_a_cut_lid$round" openib_survives_a_cut_lid
}

# The daemons of virtual hosts keep their files below a folder of this run, because other runs have hosts of the same names. The folder is
# gone afterwards.
virtual_hosts_share_no_folder() {
    local folders
    # shellcheck disable=SC2016 # expanded where a rank starts
    folders=$(env -u OMPI_MCA_orte_tmpdir_base "$COOP_FABRIC_TOOL" run --hosts 2 --virtual-hosts -- mpirun -n 2 sh -c 'echo "folder $OMPI_FILE_LOCATION"' |
        sed -n 's/^folder //p')
    echo "$folders"
    [ "$(grep -c '/coop-fabric\.[^/]*/.*h[01]' <<<"$folders")" = 2 ] || return 1
    while read -r folder; do [ ! -e "${folder%%/ompi.*}" ] || return 1; done <<<"$folders"
}

# --- UCX ----------------------------------------------------------------------------------------------------------------

# The transport has to be named: UCX does not choose the software subnet by itself.
ucx() {
    local test
    for test in tag_lat tag_bw tag_sync_lat ucp_put_lat ucp_put_bw ucp_get ucp_add ucp_fadd ucp_swap ucp_cswap stream_bw ucp_am_bw; do
        UCX_TLS=rc_v,self pair "ucx.$test" "${two[@]}" -- ucx_perftest -t $test -n 200 -w 10
    done
    for test in tag_lat tag_bw; do
        UCX_TLS=rc_v,self pair "ucx.${test}_events" "${two[@]}" -- ucx_perftest -t $test -n 500 -w 10 -E sleep
        UCX_TLS=rc_v,self pair "ucx.${test}_long" "${two[@]}" -- ucx_perftest -t $test -n 20 -w 2 -s 4000000
        UCX_TLS=rc_v,self pair "ucx.${test}_roce" "${roce[@]}" -- ucx_perftest -t $test -n 200 -w 10 -s 30000
    done
    UCX_TLS=rc_v,self pair ucx.tag_bw_long_events "${two[@]}" -- ucx_perftest -t tag_bw -n 50 -w 2 -s 4000000 -E sleep
    UCX_TLS=ud_v,self pair ucx.tag_bw_datagrams "${two[@]}" -- ucx_perftest -t tag_bw -n 200 -w 10 -s 20000
    for test in am_lat am_bw put_lat put_bw add_lat add_mr fadd cswap; do
        pair "ucx.uct_$test" "${two[@]}" -- ucx_perftest -t $test -n 200 -w 10 -d coop0:1 -x rc_verbs
    done
    pair ucx.uct_get "${two[@]}" -- ucx_perftest -t get -n 200 -w 10 -d coop0:1 -x rc_verbs -D zcopy -s 65536
    pair ucx.uct_am_lat_datagrams "${two[@]}" -- ucx_perftest -t am_lat -n 200 -w 10 -d coop0:1 -x ud_verbs

    local pml=(--mca pml ucx --mca btl '^openib,tcp,vader' -x 'UCX_TLS=rc_v,self')
    storm ucx.pml_two_rails 2 "${two[@]}" -- "${pml[@]}"
    carried ucx.pml_two_rails h0/coop0/1 1000000
    carried ucx.pml_two_rails h0/coop1/1 1000000
    carried ucx.pml_two_rails h1/coop1/1 1000000
    storm ucx.pml_two_rails_roce 2 "${roce[@]}" -- "${pml[@]}"
    carried ucx.pml_two_rails_roce h1/coop1/1 1000000
    storm ucx.pml_four_ranks 4 "${two[@]}" -- "${pml[@]}"
}

# --- failures ---------------------------------------------------------------------------------------------------------------

# ends_with WORDS COMMAND…: the command must end by itself with an error message that matches WORDS.
ends_with() {
    local words=$1 said=$log.said
    shift
    ends_with_an_error "$@" >"$said" 2>&1 || { cat "$said" && return 1; }
    cat "$said"
    grep -qE "$words" "$said" || { echo "not there: $words" && return 1; }
}

# complains WORDS COMMAND…: as ends_with, with exactly one message from the library or tool.
complains() {
    ends_with "$@" || return 1
    [ "$(grep -c '^coop-fabric' "$log.said")" = 1 ] || { echo "more than one message" && return 1; }
}

cable_is_pulled() {
    echo 'at 0.8s port h1/coop0/1 down' >"$log.scenario"
    # 12: IBV_WC_RETRY_EXC_ERR
    ends_with 'Failed status 12' on_subnet "${two[@]}" --scenario "$log.scenario" -- "$here/lib/pair.sh" ib_write_bw -D 5
}

cable_is_pulled_and_put_back() {
    printf '%s\n' 'at 0.5s link h1/coop0/1-sw0 down' 'at 0.7s link h1/coop0/1-sw0 up' >"$log.scenario"
    # Retries last longer than the cable is down.
    on_subnet "${two[@]}" --scenario "$log.scenario" --counters -- "$here/lib/pair.sh" ib_write_bw -D 2 -u 16
}

with_little_shared_memory() { # SIZE COMMAND…
    # shellcheck disable=SC2016 # for the inner shell
    unshare -m bash -c 'mount -t tmpfs -o size="$0" none /dev/shm && exec "$@"' "$@"
}

without_writable_shared_memory() { # COMMAND…
    # shellcheck disable=SC2016 # for the inner shell
    unshare -m bash -c 'mount -t tmpfs -o ro none /dev/shm && exec "$@"' bash "$@"
}

# Prints what the two ports lost in a transfer over a cable with a loss of 3 %.
lost_with_seed() { # SEED
    printf '%s\n' 'switch sw0' 'host h0 h1' 'hca h0/coop0 h1/coop0' 'link h0/coop0/1 sw0 loss=3%' 'link h1/coop0/1 sw0' >"$log.topology"
    on_subnet --topology "$log.topology" --seed "$1" --counters -- "$here/lib/pair.sh" ibv_rc_pingpong -n 120 -s 64 -c |
        awk '$1 ~ /^h[01]\/coop0\/1$/ && $2 == "active" {printf "%s lost %s ", $1, $11}'
}

losses_follow_the_seed() {
    local one same other
    one=$(lost_with_seed 7) same=$(lost_with_seed 7) other=$(lost_with_seed 8)
    echo "seed 7: $one; again: $same; seed 8: $other"
    [[ $one =~ [1-9] ]] && [ "$one" = "$same" ] && [ "$one" != "$other" ]
}

failures() {
    local full='/dev/shm is full'
    check "failures.losses_follow_the_seed$round" losses_follow_the_seed
    test_on failures.a_killed_peer_leaves_the_subnet_usable "${two[@]}" -- "$here/clients/killed_peer.sh" "$here/lib/pair.sh"
    says failures.a_killed_peer_leaves_the_subnet_usable 'Failed status 12' 1
    check "failures.a_pulled_cable_exceeds_retries$round" cable_is_pulled
    check "failures.a_cable_that_is_back_in_time_is_not_noticed$round" cable_is_pulled_and_put_back
    check "failures.copies_are_denied$round" complains 'process_vm_readv: Operation not permitted.*Yama.*seccomp' \
        on_subnet -- "$bin/deny" copies ibv_rc_pingpong
    check "failures.descriptors_are_denied$round" complains 'pidfd_getfd: Operation not permitted.*(Yama|seccomp)' \
        on_subnet -- "$bin/deny" descriptors ibv_rc_pingpong
    check "failures.check_says_what_is_denied$round" ends_with 'MISSING +copying between processes: process_vm_readv' \
        "$bin/deny" copies "$COOP_FABRIC_TOOL" check
    if ! unshare -m true 2>/dev/null; then
        report_skip failures.shared_memory_is_full "mount namespaces are not permitted" 3
        return
    fi
    check "failures.shared_memory_is_full$round" complains "$full" \
        with_little_shared_memory 64k "$COOP_FABRIC_TOOL" run --name "t$COOP_TEST_RUN-full" -- ibv_devinfo
    check "failures.shared_memory_is_read_only$round" complains 'cannot create /dev/shm/.*Read-only.*a tmpfs at /dev/shm that you can write to' \
        without_writable_shared_memory "$COOP_FABRIC_TOOL" run --name "t$COOP_TEST_RUN-read-only" -- ibv_devinfo
    check "failures.shared_memory_gets_full$round" complains "$full" \
        with_little_shared_memory 2m "$COOP_FABRIC_TOOL" run --name "t$COOP_TEST_RUN-fuller" -- ibv_rc_pingpong -r 8000
}

part_clients() {
    local package round='' number storm
    local limit=60
    # shellcheck disable=SC2034 # for on_subnet
    [ "$long" = no ] || limit=300 # with many rounds the machine is busy at some time
    for package in ibverbs-utils perftest ucx-utils libopenmpi-dev openmpi-bin; do need_debian $package || return 0; done
    log=$results/log/build_storm.log
    storm=$(mpi_program storm 2>"$log") || { report_fail clients.build_of_the_storm; return; }
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    unset OMPI_MCA_pml OMPI_MCA_btl OMPI_MCA_mca_base_component_path
    for number in $(seq "$([ "$long" = yes ] && echo 20 || echo 1)"); do
        [ "$long" = no ] || round=.round_$number
        ibverbs_utils
        perftest
        openib
        ucx
        failures
        [ "$long" = no ] || check_nothing_left "clients$round"
    done
}
