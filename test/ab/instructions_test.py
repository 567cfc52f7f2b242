# SPDX-License-Identifier: BSD-3-Clause
"""bench/instructions: how it reads callgrind's table, which measurement is the median, and refused options."""

import importlib.machinery
import importlib.util
import unittest

from programs import TOP, instructions

TABLE = """\
--------------------------------------------------------------------------------
Ir
--------------------------------------------------------------------------------
81,106,093 (100.0%)  PROGRAM TOTALS

--------------------------------------------------------------------------------
Ir                   file:function
--------------------------------------------------------------------------------
 4,386,713 ( 5.41%)  ???:coop::pml::arrive(coop::pml::Comm&) [/usr/lib/mca_pml_coop.so]
 3,154,048 ( 3.89%)  ???:PMPI_Irecv [/usr/lib/libmpi.so.40]
       412 ( 0.00%)  ./malloc/./malloc/malloc.c:malloc [/usr/lib/libc.so.6]
        12 ( 0.00%)  ???:PMPI_Irecv
"""


def module():
    loader = importlib.machinery.SourceFileLoader("instructions", f"{TOP}/bench/instructions")
    found = importlib.util.module_from_spec(importlib.util.spec_from_loader("instructions", loader))
    loader.exec_module(found)
    return found


class Instructions(unittest.TestCase):
    def test_reads_functions_and_adds_those_of_one_name(self):
        self.assertEqual(module().read(TABLE), {"coop::pml::arrive(coop::pml::Comm&)": 4386713, "PMPI_Irecv": 3154060, "malloc": 412})

    def test_takes_the_measurement_in_the_middle(self):
        self.assertEqual(module().median([{"a": 5, "b": 5}, {"a": 900}, {"a": 1}]), {"a": 5, "b": 5})

    def test_counts_what_a_message_adds(self):
        of = module()
        of.count = lambda words, program, rank, size, iterations: {"start": 1000, "message": 7 * 64 * iterations}
        self.assertEqual(of.measure("", "receive", 8, ""), {"start": 0, "message": 7})

    def test_refuses_options(self):
        for arguments, words in (
                (["-1"], "-1"),
                (["65537"], "65537: a size must be from 0 to 65536"),
                (["--repeats", "0"], "--repeats 0: must be from 1 to 100"),
                (["--functions", "1001"], "--functions 1001: must be from 0 to 1000"),
                (["--prefix", "/nowhere"], "/nowhere has no bin/coop-env")):
            done = instructions(*arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
