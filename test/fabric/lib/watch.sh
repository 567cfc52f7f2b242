# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Builds the libraries programs/watch_reads.c and watch_interrupts.c, which are preloaded into the ranks of a job, here and in the
# guest of test/vm, and checks their output.

build_watches() { # FOLDER of the programs, FOLDER for the libraries
    local program
    for program in watch_reads watch_interrupts; do
        mpicc -O1 -Wall -Wextra -Werror -shared -fPIC -o "$2/$program.so" "$1/$program.c" -ldl || return 1
    done
}

interrupted() { # FILE RANK
    grep -qE "^rank $2: [1-9][0-9]* interrupts, [1-9][0-9]* events handled\$" "$1" || { echo "rank $2 was not interrupted"; return 1; }
}

# In each process with reads: its queue pairs were given a depth of READS, and no more were outstanding at a time.
reads_were_limited() { # FILE READS
    grep '^reads: ' "$1" | awk -v most="$2" '
        $0 != "reads: at most " $4 " at once; given " most " to begin, " most " to answer" || $4 > most { print "too many: " $0; wrong = 1 }
        END { exit wrong || NR == 0 }'
}

# The limit has had an effect: it was reached, and reads had to wait (a column of btl_coopib_report).
reads_have_waited() { # FILE READS
    grep -q "^reads: at most $2 at once" "$1" || { echo "there were never $2 reads at once"; return 1; }
    awk '/^  [0-9]+ +(coop|[ab])[0-9]+ / { waited += $10 } END { print waited " reads have waited"; exit !(waited > 0) }' "$1"
}
