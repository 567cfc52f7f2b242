// SPDX-License-Identifier: BSD-3-Clause
//
// Divides the windows of a phase into areas and draws the operations on them.
#pragma once

#include <vector>

#include "plan.h"

namespace rma_storm {

// The memory of all ranks that no area of the phase has taken yet.
class Ground {
public:
    explicit Ground(const WindowPlan& window);

    // A random free place that is a multiple of `align`; false if there is none.
    bool take(pattern::Random& random, int target, std::size_t bytes, std::size_t align, std::size_t& at);

private:
    std::vector<std::vector<Segment>> free_;
};

class Planner {
public:
    Planner(const Options& options, const Round& round, int threads, pattern::Random& random, Phase& phase);
    void run(std::uint64_t operations);

private:
    // An origin with a target that it may use, and how.
    struct Way {
        int origin, target, thread, visit;
    };

    // ways.cc
    bool draw_way(Way& way, bool exclusive);
    bool find_way(Way& way, bool exclusive);  // to way.target from way.origin
    int find_visit(const Way& way, bool exclusive);

    // areas.cc
    void reserve_shared_areas();
    bool add_area(AreaKind kind, int target, std::size_t bytes, std::size_t align);
    Recipe draw_recipe(Element element, std::size_t bytes);
    std::size_t alignment(Element element, int target, bool strict);
    bool place(Operation& o, const Area& area);
    Operation make(Call call, const Way& way, const Recipe& recipe, Combine combine);
    void place_single(Operation& o, const Area& area);
    void add(Operation o);
    void add_read();
    void add_written();
    void add_sum();
    void add_sequence();
    void add_flushed();

    // shared_areas.cc
    void add_tickets();
    void add_race();
    void add_update();

    bool passive() const { return phase_.kind == EpochKind::kLocks || phase_.kind == EpochKind::kLockAll; }
    bool direct() const;
    int last_area() const { return static_cast<int>(phase_.areas.size()) - 1; }
    Element draw_element();
    Combine draw_combine(Element element);

    const Options& options_;
    const Round& round_;
    const int threads_;
    pattern::Random& random_;
    Phase& phase_;
    Ground ground_;
    std::vector<bool> all_;               // locks: the origin locks all targets at once
    std::vector<std::vector<int>> read_;  // areas by target
    std::vector<std::vector<int>> sum_;
};

}  // namespace rma_storm
