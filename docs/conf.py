# SPDX-License-Identifier: BSD-3-Clause
# Sphinx reads this in a copy of docs/ that also contains generated/: see build.sh.
import importlib.util
import os
import sys

sys.path.insert(0, os.path.abspath("ext"))

project = "ompi-coop"
author = copyright = "The ompi-coop authors"
with open("generated/VERSION", encoding="ascii") as file:
    version = release = file.read().strip()

extensions = ["sphinx.ext.graphviz", "coop_figures", "coop_charts"]
graphviz_output_format = "svg"
exclude_patterns = ["generated"]
highlight_language = "none"
smartquotes = False  # "--mca" stays what it is

html_theme = "furo" if importlib.util.find_spec("furo") else "alabaster"
html_title = f"ompi-coop {version}"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["coop.css"]

manuals = [
    ("coop-fabric", "a software InfiniBand subnet on one machine", 1),
    ("coop-env", "print the settings that make Open MPI find ompi-coop", 1),
    ("coop-ab", "compare one command under several settings", 1),
    ("coop-figures", "compare rendezvous protocols on this machine and draw the results", 1),
    ("coop-sim", "our schedulers on simulated InfiniBand subnets", 1),
    ("coop-bench", "MPI benchmarks: latency, bandwidth, message rate, memory, patterns, overlap", 1),
    ("mca_btl_coopib", "InfiniBand and RoCE over many rails, for Open MPI", 7),
    ("mca_coll_rdmaag", "MPI_Allgather by RDMA, for Open MPI", 7),
    ("mca_osc_multirail", "one-sided communication of ompi-coop for Open MPI", 7),
    ("mca_pml_coop", "point-to-point component of ompi-coop for Open MPI", 7),
]
man_pages = [(f"man/{name}", name, about, [], section) for name, about, section in manuals]
man_show_urls = True
