// SPDX-License-Identifier: BSD-3-Clause
//
// Areas whose outcome depends on timing: tickets, races and updates.
#include <algorithm>

#include "planner.h"

namespace rma_storm {

void Planner::add_tickets() {
    Way way;
    if (!options_.has(Feature::kTickets) || !draw_way(way, false)) return;
    static constexpr Element kElements[] = {Element::kInt32, Element::kUint32, Element::kInt64, Element::kUint64};
    static constexpr Combine kCombines[] = {Combine::kSum, Combine::kSum, Combine::kOr, Combine::kXor};
    const Element element = kElements[random_.below(std::size(kElements))];
    const std::size_t elements = random_.one_in(2) ? 1 : 1 + random_.below(40);
    const std::size_t align = alignment(element, way.target, elements == 1);
    if (!add_area(AreaKind::kTickets, way.target, (elements == 1 ? 1 : 2) * elements * bytes_of(element), align))
        return;
    Area area = phase_.areas.back();
    area.element = element;
    area.combine = kCombines[random_.below(std::size(kCombines))];
    area.fresh = true;
    area.content = Content::kZero;
    phase_.areas.back() = area;
    std::uint64_t bit = 0;
    for (std::uint64_t left = 2 + random_.below(static_cast<std::uint64_t>(4 * round_.size)); left > 0; --left) {
        way.origin = static_cast<int>(random_.below(static_cast<std::uint64_t>(round_.size)));
        if (!find_way(way, false)) continue;
        const bool read = random_.one_in(5);
        if (!read && bit == 8 * bytes_of(element)) break;
        Operation o = make(random_.one_in(5) && !read ? Call::kAccumulate : Call::kGetAccumulate, way,
                           draw_recipe(element, elements * bytes_of(element)), read ? Combine::kNoOp : area.combine);
        o.content = Content::kTicket;
        if (elements == 1) {
            const Call call = o.call;
            place_single(o, area);
            if (call == Call::kGetAccumulate && random_.one_in(2)) o.call = Call::kFetchAndOp;
        } else if (!place(o, area)) {
            continue;
        }
        o.key = read ? 0 : bit++;
        add(o);
    }
}

void Planner::add_race() {
    Way way;
    if (!options_.has(Feature::kRaces) || !draw_way(way, false)) return;
    static constexpr Element kElements[] = {Element::kByte,  Element::kInt8,  Element::kUint16, Element::kInt32,
                                            Element::kInt32, Element::kInt64, Element::kInt64,  Element::kUint64};
    const Element element = kElements[random_.below(std::size(kElements))];
    if (!add_area(AreaKind::kRace, way.target, bytes_of(element), alignment(element, way.target, true))) return;
    Area area = phase_.areas.back();
    area.element = element;
    area.fresh = true;
    area.content = Content::kZero;
    phase_.areas.back() = area;
    const std::uint64_t attempts = 2 + random_.below(static_cast<std::uint64_t>(2 * round_.size));
    for (std::uint64_t bit = 0; bit < std::min<std::uint64_t>(attempts, 8 * bytes_of(element)); ++bit) {
        way.origin = static_cast<int>(random_.below(static_cast<std::uint64_t>(round_.size)));
        if (!find_way(way, false)) continue;
        Operation o = make(Call::kCompareAndSwap, way, draw_recipe(element, 0), Combine::kReplace);
        o.content = Content::kTicket;
        o.key = bit;  // each swaps in another value, and none swaps in 0
        place_single(o, area);
        add(o);
    }
}

void Planner::add_update() {
    Way way;
    if (!options_.has(Feature::kUpdates) || phase_.kind != EpochKind::kLocks || !draw_way(way, true)) return;
    const std::size_t elements = 1 + random_.below(12);
    if (!add_area(AreaKind::kUpdate, way.target, elements * 8, 8)) return;
    Area area = phase_.areas.back();
    area.element = Element::kUint64;
    area.combine = Combine::kSum;
    area.fresh = true;
    area.content = Content::kZero;
    phase_.areas.back() = area;
    const std::uint64_t updates = 2 + random_.below(static_cast<std::uint64_t>(3 * round_.size));
    for (std::uint64_t bit = 0; bit < std::min<std::uint64_t>(updates, 64); ++bit) {
        way.origin = static_cast<int>(random_.below(static_cast<std::uint64_t>(round_.size)));
        if (!find_way(way, true)) continue;
        Recipe recipe = draw_recipe(Element::kUint64, elements * 8);
        recipe.kind = ShapeKind::kPredefined;
        Operation o = make(Call::kUpdate, way, recipe, Combine::kSum);
        o.at = area.at;
        o.at_origin.kind = o.at_result.kind = ShapeKind::kPredefined;
        o.content = Content::kTicket;
        o.key = bit;
        o.flush = true;  // it may follow another update
        add(o);
    }
}

}  // namespace rma_storm
