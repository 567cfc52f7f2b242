# SPDX-License-Identifier: BSD-3-Clause
"""The parts of coop-ab, bottom-up: errors; stats; settings, reading, run; host; session (the loop over rounds);
record (what is kept, and its JSON); summary (per-size comparison); gates, table, plot; cli."""
