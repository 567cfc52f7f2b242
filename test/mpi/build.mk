# SPDX-License-Identifier: BSD-3-Clause
# Builds the test programs: make -f build.mk SRC=this-folder OUT=build-folder [SAN=asan|tsan]
MPICXX ?= mpicxx
SAN_asan = -fsanitize=address,undefined -fno-sanitize-recover=undefined
SAN_tsan = -fsanitize=thread
CXXFLAGS = -std=c++17 -O1 -g -Wall -Wextra -Werror -pthread $(SAN_$(SAN)) -I$(SRC)/lib -MMD -MP
# Open MPI's C++ bindings are not ours to test.
CPPFLAGS = -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX

topics := $(notdir $(basename $(wildcard $(SRC)/semantics/*.cc)))
storm := $(patsubst $(SRC)/storm/%.cc,$(OUT)/obj/storm/%.o,$(wildcard $(SRC)/storm/*.cc))

all: $(topics:%=$(OUT)/%) $(OUT)/storm

$(OUT)/obj/%.o: $(SRC)/%.cc $(SRC)/build.mk
	@mkdir -p $(@D)
	$(MPICXX) $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

$(OUT)/storm: $(storm)
	$(MPICXX) $(CXXFLAGS) -o $@ $^

$(topics:%=$(OUT)/%): $(OUT)/%: $(OUT)/obj/semantics/%.o $(OUT)/obj/lib/mpi_test.o
	$(MPICXX) $(CXXFLAGS) -o $@ $^

.PHONY: all
.SECONDARY:
-include $(wildcard $(OUT)/obj/*/*.d)
