# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Runs the storm while the transport refuses operations, and jobs with a damaged control header (pml_coop_fault, see
# opal/mca/common/coop/base/fault.h).
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

faulty_storm() {
    local name=$1 ground=$2 fault=$3 protocol=$4 messages=${5:-1000} threads=${6:-1}
    [ -z "$san" ] || messages=$((messages / 4))
    check "faults.${name}_over_$ground" launch "$ground" 3 --mca pml_coop_fault "$fault" --mca pml_coop_protocol "$protocol" \
        "$bin/storm" --messages "$messages" --seed 5 --threads "$threads"
}

# Flips a bit in byte BYTE of the third header of a kind. The job must end by itself without a crash, and name the sender and the
# wrong field.
damaged_header_is_diagnosed() {
    local kind=$1 byte=$2 protocol=$3
    damage_is_diagnosed "corrupt_$kind@3=$byte" --mca pml_coop_protocol "$protocol" "$bin/storm" --messages 400 --seed 5 --stall 20
}
damage_is_diagnosed() { # FAULT ARGUMENT…
    limit=60 ends_with_an_error launch_and_keep vader 2 --mca pml_coop_fault "$@" || return 1
    if grep -aE 'Signal:|signal [0-9]+ \(|NO PROGRESS|AddressSanitizer|runtime error' "$log.job"; then return 1; fi
    grep -aE 'Sender: *rank -?[0-9]+' "$log.job" && grep -a 'Field: *[a-z]' "$log.job"
}

# The error names the rank of the sender in the job, not in the communicator. SENDER is that of the packet.
bad_packet_is_diagnosed() { # SENDER LINE ARGUMENT…
    local sender=$1 line=$2
    shift 2
    limit=60 ends_with_an_error launch_and_keep vader 4 --mca pml_coop_protocol rget --mca pml_coop_lane 0 "$bin/bad_packets" "$@" || return 1
    grep -aqE "^  Sender: *rank $sender$" "$log.job" && grep -aqE "^  $line$" "$log.job"
}

damaged() { # KIND HEADER-BYTES PROTOCOL
    local byte=0 step=1
    [ "$long" = yes ] || step=$(($2 / 2 - 1))
    # The check word finds all of them, by the same code.
    everywhere || byte=$(($2 / 2)) step=$2
    for (( ; byte < $2; byte += step)); do
        check "faults.damaged_$1_by_$3_byte_$byte" damaged_header_is_diagnosed "$1" "$byte" "$3"
    done
}

part_faults() {
    local ground
    if [ "$pml" != coop ]; then
        report_skip faults "only pml/coop can inject faults"
        return
    fi
    for ground in vader tcp; do
        faulty_storm refusals_of_all_kinds $ground busy:7,alloc:11,register:5,get:3,put:3 hybrid
        # tcp has neither get, nor sends at once, nor registration; the rest takes the same code over both.
        [ $ground = vader ] || [ "$long" = yes ] || continue
        faulty_storm put_is_never_there $ground put:1 rput 500
        faulty_storm put_is_often_busy $ground put_busy:2 rput 500
        faulty_storm busy_and_no_descriptor $ground busy:2,alloc:3 send
        faulty_storm refusals_among_threads $ground busy:5,alloc:7,get:4,put:4,get_busy:3,put_busy:3 hybrid 1000 3
        [ $ground = vader ] || continue
        faulty_storm no_immediate_send $ground sendi:1 hybrid 500
        faulty_storm no_memory_is_registered $ground register:1 hybrid 500
        faulty_storm get_is_never_there $ground get:1 rget 500
        faulty_storm get_is_often_busy $ground get_busy:2 rget 500
    done
    # The program is not instrumented, so an instrumented component cannot be loaded into it.
    if [ -z "$san" ]; then
        check faults.damaged_match_names_its_sender bad_packet_is_diagnosed 3 'Field: *check word' damage 1
        check faults.damaged_rts_names_its_sender bad_packet_is_diagnosed 3 'Field: *check word' damage 2 100000
        check faults.repeated_match_is_diagnosed bad_packet_is_diagnosed 3 'Error: *the message with sequence number [0-9]+ has arrived before' repeat 1
        check faults.repeated_rts_is_diagnosed bad_packet_is_diagnosed 3 'Error: *the message with sequence number [0-9]+ has arrived before' \
            repeat 2 100000
        check faults.repeated_fin_is_diagnosed bad_packet_is_diagnosed 1 'Error: *no send with the id [0-9]+ is under way' repeat 5 100000
    fi
    # Bit 31 of the sender's rank, in one of many messages that both processes copy at the same time.
    check faults.damaged_rank_of_a_message_in_parts_is_diagnosed damage_is_diagnosed corrupt_match@100=7.7 --mca pml_coop_lane_max 131072 \
        --mca pml_coop_lane_read_min 1000000 "$prefix/libexec/ompi-coop/coop_bw" --blocking -m 64K -i 300 -b 1 -x 0
    damaged match 16 hybrid
    damaged rts 48 hybrid
    damaged cts 72 send
    damaged cts 72 rput
    damaged cts 72 coop
    damaged frag 24 send
    damaged fin 24 rget
    damaged fin 24 rput
}
