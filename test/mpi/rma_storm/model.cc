// SPDX-License-Identifier: BSD-3-Clause
#include "model.h"

#include <cstring>

namespace rma_storm {

Bytes initial_content(const Round& round, int rank) {
    Bytes content(round.window.bytes(rank));
    pattern::fill(pattern::key({round.key, 5, static_cast<std::uint64_t>(rank)}), 0, content.data(), content.size());
    return content;
}

Bytes operand(const Operation& o) {
    Bytes stream(o.bytes());
    fill(o.at_target.element, o.content, o.key, o.at_target.elements, stream.data());
    return stream;
}

Model::Model(const Round& round, int self) : self_(self) {
    for (int rank = 0; rank < round.size; ++rank) windows_.push_back(initial_content(round, rank));
}

void Model::begin_phase(const Phase& phase) {
    before_ = own();
    expected_.clear();
    for (const Area& area : phase.areas)
        if (area.fresh)
            fill(area.element, area.content, area.key, area.bytes / bytes_of(area.element),
                 window(area.target).data() + area.at);
    for (std::size_t i = 0; i < phase.operations.size(); ++i) apply(phase, i);
}

// A compare-and-swap in a flushed area takes effect here; of those in a race, only the comparand is known.
void Model::swap(const Operation& o, const Area& area, Expectation* own) {
    unsigned char* at = window(o.target).data() + o.at;
    Bytes found(at, at + o.bytes());
    Bytes comparand = found;
    if (o.comparand_key != 0) fill(o.at_target.element, Content::kBits, o.comparand_key, 1, comparand.data());
    if (own != nullptr) own->comparand = comparand;
    if (area.kind == AreaKind::kRace) return;
    if (own != nullptr) own->result = found;
    if (comparand == found) std::memcpy(at, operand(o).data(), o.bytes());
}

void Model::apply(const Phase& phase, std::size_t index) {
    const Operation& o = phase.operations[index];
    const Area& area = phase.areas[static_cast<std::size_t>(o.area)];
    Expectation* own = o.origin == self_ ? &expected_[index] : nullptr;
    if (o.call == Call::kCompareAndSwap) return swap(o, area, own);
    const bool fetches = own != nullptr && o.has_result() && area.kind != AreaKind::kTickets &&
                         area.kind != AreaKind::kSum && area.kind != AreaKind::kUpdate;
    if (!fetches && !o.has_operand()) return;
    const Shape shape(o.at_target);
    unsigned char* at = window(o.target).data() + o.at;
    Bytes content(o.bytes());
    shape.gather(at, content.data());
    if (fetches) own->result = content;
    if (!o.has_operand()) return;
    combine(o.at_target.element, o.combine, operand(o).data(), content.data(), o.at_target.elements);
    shape.scatter(content.data(), at);
}

}  // namespace rma_storm
