// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>

#include "planner.h"

namespace rma_storm {
namespace {

using pattern::Random;

std::size_t round_up(std::size_t at, std::size_t align) { return (at + align - 1) / align * align; }

}  // namespace

Ground::Ground(const WindowPlan& window) : free_(window.segments) {}

bool Ground::take(Random& random, int target, std::size_t bytes, std::size_t align, std::size_t& at) {
    std::vector<Segment>& free = free_[static_cast<std::size_t>(target)];
    const std::size_t first = random.below(free.size());
    for (std::size_t i = 0; i < free.size(); ++i) {
        const std::size_t index = (first + i) % free.size();
        const Segment s = free[index];
        const std::size_t lowest = round_up(s.at, align), end = s.at + s.bytes;
        if (bytes == 0 || lowest + bytes > end) continue;
        const std::size_t places = (end - bytes - lowest) / align + 1;
        // Close to one end as often as anywhere, so that the rest stays useful and areas touch each other.
        at = lowest + (random.one_in(2) ? 0 : random.below(places)) * align;
        free[index] = {s.at, at - s.at};
        free.push_back({at + bytes, end - at - bytes});
        return true;
    }
    return false;
}

Planner::Planner(const Options& options, const Round& round, int threads, Random& random, Phase& phase)
    : options_(options), round_(round), threads_(threads), random_(random), phase_(phase), ground_(round.window),
      all_(static_cast<std::size_t>(round.size)), read_(all_.size()), sum_(all_.size()) {
    if (phase.kind != EpochKind::kLocks || phase.nested || !options.has(Feature::kMixed)) return;
    if (!random.one_in(2)) return;
    all_[random.below(all_.size())] = true;
    for (std::size_t rank = 0; rank < all_.size() && options.has(Feature::kCrowded); ++rank)
        if (random.one_in(2)) all_[rank] = true;
}

Element Planner::draw_element() {
    const auto element = static_cast<Element>(random_.below(static_cast<std::uint64_t>(Element::kCount)));
    return element == Element::kTwoInts && !options_.has(Feature::kPairs) ? Element::kInt64 : element;
}

Combine Planner::draw_combine(Element element) {
    const bool is_unsigned = element == Element::kUint16 || element == Element::kUint32 || element == Element::kUint64;
    const Combine combine = rma_storm::draw_combine(element, random_.next());
    const bool compares = combine == Combine::kMaximum || combine == Combine::kMinimum;
    return is_unsigned && compares && !options_.has(Feature::kUnsigned) ? Combine::kXor : combine;
}

Recipe Planner::draw_recipe(Element element, std::size_t bytes) {
    Recipe recipe;
    recipe.element = element;
    recipe.elements = std::max<std::size_t>(1, bytes / bytes_of(element));
    recipe.seed = random_.next();
    if (options_.has(Feature::kDerived) && random_.one_in(2))
        recipe.kind = static_cast<ShapeKind>(random_.below(static_cast<std::uint64_t>(ShapeKind::kCount)));
    return recipe;
}

// Of a place in the window. `strict`: it is a multiple of the displacement unit.
std::size_t Planner::alignment(Element element, int target, bool strict) {
    const std::size_t bytes = bytes_of(element);
    if (!strict && options_.has(Feature::kDerived) && random_.one_in(2)) return bytes;
    return std::lcm(bytes, static_cast<std::size_t>(round_.window.unit[static_cast<std::size_t>(target)]));
}

bool Planner::add_area(AreaKind kind, int target, std::size_t bytes, std::size_t align) {
    Area area{kind, target, 0, bytes, Element::kByte, Combine::kReplace, false, Content::kBits, random_.next()};
    if (!ground_.take(random_, target, bytes, align, area.at)) return false;
    phase_.areas.push_back(area);
    return true;
}

// Chooses the place of the operation inside of the area; makes it shorter if it does not fit.
bool Planner::place(Operation& o, const Area& area) {
    const std::size_t align = alignment(o.at_target.element, o.target, false);
    const std::size_t lowest = round_up(area.at, align), end = area.at + area.bytes;
    for (; o.at_target.elements > 0; o.at_target.elements /= 2) {
        const std::size_t span = Shape(o.at_target).span();
        if (lowest + span > end) continue;
        o.at = lowest + random_.below((end - span - lowest) / align + 1) * align;
        o.at_origin.elements = o.at_result.elements = o.at_target.elements;
        return true;
    }
    return false;
}

// Chooses the place of an operation on one element.
void Planner::place_single(Operation& o, const Area& area) {
    o.at_target.kind = o.at_origin.kind = o.at_result.kind = ShapeKind::kPredefined;
    o.at_target.elements = o.at_origin.elements = o.at_result.elements = 1;
    const std::size_t align = alignment(o.at_target.element, o.target, true), bytes = bytes_of(o.at_target.element);
    const std::size_t lowest = round_up(area.at, align);
    if (lowest + bytes > area.at + area.bytes) o.at_target.elements = 0;  // no room
    else o.at = lowest + random_.below((area.at + area.bytes - bytes - lowest) / align + 1) * align;
}

Operation Planner::make(Call call, const Way& way, const Recipe& recipe, Combine combine) {
    Operation o{};
    o.call = call;
    o.area = last_area();
    o.origin = way.origin;
    o.target = way.target;
    o.thread = way.thread;
    o.visit = way.visit;
    o.combine = combine;
    o.at_target = recipe;
    o.at_origin = draw_recipe(recipe.element, 0);
    o.at_result = draw_recipe(recipe.element, 0);
    o.at_origin.elements = o.at_result.elements = recipe.elements;
    o.key = random_.next();
    o.content = content_for(recipe.element, combine);
    return o;
}

void Planner::add(Operation o) {
    if (o.at_target.elements == 0 && o.call != Call::kPut && o.call != Call::kGet) return;
    const bool may = o.call == Call::kPut || o.call == Call::kGet || o.call == Call::kAccumulate ||
                     o.call == Call::kGetAccumulate;
    o.request = may && passive() && options_.has(Feature::kRequests) && random_.one_in(3);
    phase_.operations.push_back(o);
}

void Planner::reserve_shared_areas() {
    for (int target = 0; target < round_.size; ++target) {
        const std::size_t bytes = round_.window.bytes(target);
        const auto t = static_cast<std::size_t>(target);
        if (options_.has(Feature::kReads) && add_area(AreaKind::kRead, target, bytes / (2 + random_.below(3)), 1))
            read_[t].push_back(last_area());
        if (!options_.has(Feature::kSums)) continue;
        for (std::uint64_t i = random_.below(3); i > 0; --i) {
            if (!add_area(AreaKind::kSum, target, bytes / (4 + random_.below(30)), 8)) continue;
            Area& area = phase_.areas.back();
            area.element = draw_element();
            area.combine = draw_combine(area.element);
            area.content = content_for(area.element, area.combine);
            area.fresh = area.content == Content::kSmall || random_.one_in(4);
            sum_[t].push_back(last_area());
        }
    }
}

void Planner::add_read() {
    Way way;
    if (!options_.has(Feature::kReads) || !draw_way(way, false) || read_[static_cast<std::size_t>(way.target)].empty())
        return;
    const int index = read_[static_cast<std::size_t>(way.target)].front();
    const Area& area = phase_.areas[static_cast<std::size_t>(index)];
    Operation o = make(Call::kGet, way, draw_recipe(draw_element(), draw_bytes(random_, options_.max_bytes)),
                       Combine::kNoOp);
    o.area = index;
    if (random_.one_in(6)) o.call = Call::kGetAccumulate;
    else if (direct() && random_.one_in(4)) o.call = Call::kLoad;
    else if (random_.one_in(10)) {
        o.call = Call::kFetchAndOp;
        place_single(o, area);
        return add(o);
    }
    if (options_.has(Feature::kZero) && random_.one_in(60) && o.call == Call::kGet) {
        o.at_target.elements = o.at_origin.elements = o.at_result.elements = 0;
        o.at = area.at;
        return add(o);
    }
    if (place(o, area)) add(o);
}

void Planner::add_written() {
    Way way;
    if (!draw_way(way, false)) return;
    Recipe recipe = draw_recipe(draw_element(), draw_bytes(random_, options_.max_bytes));
    const std::size_t align = alignment(recipe.element, way.target, false);
    for (; recipe.elements > 0; recipe.elements /= 4) {
        if (!add_area(AreaKind::kWritten, way.target, Shape(recipe).span(), align)) continue;
        Operation o = make(Call::kPut, way, recipe, Combine::kReplace);
        o.at = phase_.areas.back().at;
        if (random_.one_in(6)) o.call = Call::kAccumulate;
        else if (random_.one_in(6)) o.call = Call::kGetAccumulate;
        else if (direct() && random_.one_in(4)) o.call = Call::kStore;
        else if (options_.has(Feature::kZero) && random_.one_in(60))
            o.at_target.elements = o.at_origin.elements = o.at_result.elements = 0;
        return add(o);
    }
}

void Planner::add_sum() {
    Way way;
    if (!options_.has(Feature::kSums) || !draw_way(way, false)) return;
    const std::vector<int>& areas = sum_[static_cast<std::size_t>(way.target)];
    if (areas.empty()) return;
    const int index = areas[random_.below(areas.size())];
    const Area area = phase_.areas[static_cast<std::size_t>(index)];
    Operation o = make(Call::kAccumulate, way, draw_recipe(area.element, draw_bytes(random_, options_.max_bytes)),
                       area.combine);
    o.area = index;
    if (random_.one_in(5)) o.call = Call::kGetAccumulate;
    if (place(o, area)) add(o);
}

void Planner::add_sequence() {
    Way way;
    if (!options_.has(Feature::kSequences) || round_.window.unordered || !draw_way(way, false)) return;
    const std::size_t bytes = draw_bytes(random_, std::min<std::size_t>(options_.max_bytes, 20000)) + 8;
    if (!add_area(AreaKind::kSequence, way.target, 2 * bytes, 8)) return;
    Area area = phase_.areas.back();
    area.element = draw_element();
    area.combine = random_.one_in(3) ? Combine::kReplace : draw_combine(area.element);
    area.content = content_for(area.element, area.combine);
    area.fresh = area.content == Content::kSmall;
    phase_.areas.back() = area;
    for (std::uint64_t left = 2 + random_.below(4); left > 0; --left) {
        const bool read = random_.one_in(3);
        Operation o = make(random_.one_in(3) && !read ? Call::kAccumulate : Call::kGetAccumulate, way,
                           draw_recipe(area.element, bytes), read ? Combine::kNoOp : area.combine);
        if (random_.one_in(4) && area.element != Element::kTwoInts) {
            o.call = Call::kFetchAndOp;
            place_single(o, area);
        } else if (!place(o, area)) {
            continue;
        }
        add(o);
    }
}

void Planner::add_flushed() {
    Way way;
    if (!options_.has(Feature::kFlushed) || !passive() || !draw_way(way, false)) return;
    const std::size_t bytes = draw_bytes(random_, options_.max_bytes) + 8;
    if (!add_area(AreaKind::kFlushed, way.target, bytes + bytes / 2, 1)) return;
    const Area area = phase_.areas.back();
    for (std::uint64_t left = 2 + random_.below(4); left > 0; --left) {
        static constexpr Call kCalls[] = {Call::kPut,        Call::kPut,           Call::kGet,           Call::kGet,
                                          Call::kAccumulate, Call::kGetAccumulate, Call::kCompareAndSwap};
        const Call call = kCalls[random_.below(std::size(kCalls))];
        Element element = draw_element();
        if (element == Element::kDouble && (call == Call::kAccumulate || call == Call::kGetAccumulate))
            element = Element::kUint64;
        if (call == Call::kCompareAndSwap && (element == Element::kDouble || element == Element::kTwoInts))
            element = Element::kInt64;
        const bool writes = call == Call::kAccumulate || call == Call::kGetAccumulate;
        Operation o = make(call, way, draw_recipe(element, bytes), writes ? draw_combine(element) : Combine::kReplace);
        o.flush = true;
        if (call == Call::kCompareAndSwap) {
            if (random_.one_in(2)) o.comparand_key = random_.next() | 1;
            place_single(o, area);
        } else if (!place(o, area)) {
            continue;
        }
        add(o);
    }
}

void Planner::run(std::uint64_t operations) {
    reserve_shared_areas();
    for (std::uint64_t attempt = 0; phase_.operations.size() < operations && attempt < 2 * operations; ++attempt) {
        switch (random_.below(20)) {
        case 0:
        case 1: add_tickets(); break;
        case 2: add_race(); break;
        case 3:
        case 4: add_update(); break;
        case 5:
        case 6: add_sequence(); break;
        case 7:
        case 8: add_flushed(); break;
        case 9:
        case 10:
        case 11: add_sum(); break;
        case 12:
        case 13:
        case 14: add_read(); break;
        default:
            if (options_.has(Feature::kWrites)) add_written();
        }
    }
    for (const Area& area : phase_.areas) phase_.stores = phase_.stores || area.fresh;
}

void plan_operations(const Options& options, const Round& round, int threads, std::uint64_t operations, Random& random,
                     Phase& phase) {
    Planner(options, round, threads, random, phase).run(operations * static_cast<std::uint64_t>(round.size));
}

bool Operation::has_result() const { return call != Call::kPut && call != Call::kAccumulate && call != Call::kStore; }

bool Operation::has_operand() const {
    if (call == Call::kGet || call == Call::kLoad) return false;
    return combine != Combine::kNoOp || call == Call::kPut;
}

}  // namespace rma_storm
