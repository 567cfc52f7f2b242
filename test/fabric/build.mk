# SPDX-License-Identifier: BSD-3-Clause
# Builds the test programs: make -f build.mk SRC=this-folder OUT=build-folder
CXX ?= g++
CORE = $(SRC)/../../opal/mca/common
CXXFLAGS = -std=c++17 -O1 -g -Wall -Wextra -Werror -pthread -MMD -MP
CPPFLAGS = -I$(SRC)/lib -I$(SRC)/../lib -I$(SRC)/../mpi/lib

objects = $(patsubst $(1)/%.cc,$(OUT)/obj/$(2)/%.o,$(wildcard $(1)/*.cc))

topics := $(basename $(notdir $(wildcard $(SRC)/semantics/*.cc)))
library := $(call objects,$(SRC)/lib,lib)

# Programs of rail/ include parts of this project: path/ and rail/verbs of common/coop.
rail_topics := rails many
rail_library := $(OUT)/obj/rail/node.o $(OUT)/obj/rail/crowd.o $(call objects,$(CORE)/coop/path,core/path) \
	$(call objects,$(CORE)/coop/rail/verbs,core/rail/verbs)

# Programs without the library, for the parts clients and measures.
others := $(basename $(notdir $(wildcard $(SRC)/clients/*.c $(SRC)/clients/*.cc)))

all: $(topics:%=$(OUT)/%) $(rail_topics:%=$(OUT)/%) $(others:%=$(OUT)/%)

$(OUT)/obj/rail/%.o $(OUT)/obj/core/%.o: CXXFLAGS += -std=c++20 -Wno-missing-field-initializers
$(OUT)/obj/rail/%.o $(OUT)/obj/core/%.o: CPPFLAGS += -I$(CORE)

$(OUT)/obj/%.o: $(SRC)/%.cc $(SRC)/build.mk
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

$(OUT)/obj/core/%.o: $(CORE)/coop/%.cc $(SRC)/build.mk
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

$(topics:%=$(OUT)/%): $(OUT)/%: $(OUT)/obj/semantics/%.o $(library)
	$(CXX) $(CXXFLAGS) -o $@ $^ -libverbs

$(rail_topics:%=$(OUT)/%): $(OUT)/%: $(OUT)/obj/rail/%.o $(rail_library) $(library)
	$(CXX) $(CXXFLAGS) -o $@ $^ -libverbs -ldl

$(OUT)/%: $(SRC)/clients/%.c $(SRC)/build.mk
	$(CC) -O1 -g -Wall -Wextra -Werror -o $@ $<

$(OUT)/%: $(OUT)/obj/clients/%.o
	$(CXX) $(CXXFLAGS) -o $@ $^ -libverbs

.PHONY: all
.SECONDARY:
-include $(wildcard $(OUT)/obj/*/*.d $(OUT)/obj/core/*/*.d $(OUT)/obj/core/*/*/*.d)
