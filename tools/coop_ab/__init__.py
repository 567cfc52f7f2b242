# SPDX-License-Identifier: BSD-3-Clause
"""The parts of coop-ab, bottom-up: errors; files, program; stats; settings, reading, run; host; session (the loop over
rounds); record (the samples, and their JSON file); summary (per-size comparison); gates, table, plot; cli."""
