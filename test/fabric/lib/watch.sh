# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the libraries programs/watch_*.c, preloaded into the ranks of a job, have said in FILE: here, and in the guest of test/vm.

build_watches() { # FOLDER with programs, FOLDER for libraries
    local program
    for program in watch_reads watch_interrupts; do
        mpicc -O1 -Wall -Wextra -Werror -shared -fPIC -o "$2/$program.so" "$1/$program.c" -ldl || return 1
    done
}

interrupted() { # FILE RANK
    grep -qE "^rank $2: [1-9][0-9]* interrupts, [1-9][0-9]* events handled\$" "$1" || { echo "rank $2 was not interrupted"; return 1; }
}

# Each process that has read: its queue pairs were given no more than so many, and no more were ever under way.
reads_were_limited() { # FILE READS
    grep '^reads: ' "$1" | awk -v most="$2" '
        $0 != "reads: at most " $4 " at once; given " most " to begin, " most " to answer" || $4 > most { print "too many: " $0; wrong = 1 }
        END { exit wrong || NR == 0 }'
}

# The limit has done something: it was reached, and some had to wait for their turn (a column of the report, btl_coopib_report).
reads_have_waited() { # FILE READS
    grep -q "^reads: at most $2 at once" "$1" || { echo "there were never $2 reads at once"; return 1; }
    awk '/^  [0-9]+ +(coop|[ab])[0-9]+ / { waited += $10 } END { print waited " reads have waited"; exit !(waited > 0) }' "$1"
}
