# SPDX-License-Identifier: BSD-3-Clause
# Builds the test programs: make -f build.mk SRC=this-folder OUT=build-folder
CXX ?= g++
CXXFLAGS = -std=c++17 -O1 -g -Wall -Wextra -Werror -pthread -MMD -MP
CPPFLAGS = -I$(SRC)/lib -I$(SRC)/../mpi/lib

topics := $(basename $(notdir $(wildcard $(SRC)/semantics/*.cc)))
library := $(patsubst $(SRC)/lib/%.cc,$(OUT)/obj/lib/%.o,$(wildcard $(SRC)/lib/*.cc))

# Programs without the library: what the parts clients and measures need.
others := $(basename $(notdir $(wildcard $(SRC)/clients/*.c $(SRC)/clients/*.cc)))

all: $(topics:%=$(OUT)/%) $(others:%=$(OUT)/%)

$(OUT)/obj/%.o: $(SRC)/%.cc $(SRC)/build.mk
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

$(topics:%=$(OUT)/%): $(OUT)/%: $(OUT)/obj/semantics/%.o $(library)
	$(CXX) $(CXXFLAGS) -o $@ $^ -libverbs

$(OUT)/%: $(SRC)/clients/%.c $(SRC)/build.mk
	$(CC) -O1 -g -Wall -Wextra -Werror -o $@ $<

$(OUT)/%: $(OUT)/obj/clients/%.o
	$(CXX) $(CXXFLAGS) -o $@ $^ -libverbs

.PHONY: all
.SECONDARY:
-include $(wildcard $(OUT)/obj/*/*.d)
