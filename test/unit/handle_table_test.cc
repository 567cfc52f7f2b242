// SPDX-License-Identifier: BSD-3-Clause
//
// base/handle_table.h: an id never finds an object other than its own. Also the tests of base/list.h and of
// base/spin_lock.h (SpinLock and Baton).
#include "coop/base/handle_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "coop/base/list.h"
#include "coop/base/spin_lock.h"

namespace coop {
namespace {

struct Request {
    int number = 0;
};

using Table = HandleTable<Request>;

constexpr std::uint64_t kGeneration = std::uint64_t{1} << 32;

TEST(HandleTable, finds_what_was_acquired) {
    Table table;
    Request a, b;
    const std::uint64_t id_a = table.acquire(&a);
    const std::uint64_t id_b = table.acquire(&b);
    EXPECT_NE(id_a, 0u);
    EXPECT_NE(id_a, id_b);
    EXPECT_EQ(table.find(id_a), &a);
    EXPECT_EQ(table.find(id_b), &b);
    EXPECT_EQ(table.in_use(), 2u);
}

TEST(HandleTable, a_new_table_knows_no_id) {
    Table table;
    for (std::uint64_t id : {std::uint64_t{0}, std::uint64_t{1}, kGeneration + 1, UINT64_MAX})
        EXPECT_EQ(table.find(id), nullptr);
    table.release(kGeneration + 1);
    EXPECT_EQ(table.in_use(), 0u);
}

TEST(HandleTable, a_released_id_finds_nothing) {
    Table table;
    Request a;
    const std::uint64_t id = table.acquire(&a);
    table.release(id);
    EXPECT_EQ(table.find(id), nullptr);
    EXPECT_EQ(table.in_use(), 0u);
}

TEST(HandleTable, a_stale_id_does_not_find_the_next_user_of_its_slot) {
    Table table;
    Request a, b;
    const std::uint64_t stale = table.acquire(&a);
    table.release(stale);
    const std::uint64_t fresh = table.acquire(&b);
    ASSERT_EQ(static_cast<std::uint32_t>(stale), static_cast<std::uint32_t>(fresh)) << "the slot is used again";
    EXPECT_NE(stale, fresh);
    EXPECT_EQ(table.find(stale), nullptr);
    EXPECT_EQ(table.find(fresh), &b);
}

TEST(HandleTable, releasing_a_stale_id_leaves_the_next_user_alone) {
    Table table;
    Request a, b;
    const std::uint64_t stale = table.acquire(&a);
    table.release(stale);
    const std::uint64_t fresh = table.acquire(&b);
    table.release(stale);
    EXPECT_EQ(table.find(fresh), &b);
    EXPECT_EQ(table.in_use(), 1u);
}

TEST(HandleTable, releasing_twice_frees_the_slot_once) {
    Table table;
    Request a, b, c;
    const std::uint64_t id = table.acquire(&a);
    table.release(id);
    table.release(id);
    EXPECT_NE(table.acquire(&b), table.acquire(&c));
    EXPECT_EQ(table.in_use(), 2u);
}

TEST(HandleTable, every_flipped_bit_of_an_id_finds_nothing_or_another_id_in_use) {
    Table table;
    std::vector<Request> requests(5);
    std::unordered_map<std::uint64_t, Request*> ids;
    for (Request& r : requests) ids[table.acquire(&r)] = &r;
    for (const auto& [id, object] : ids) {
        EXPECT_EQ(table.find(id), object);
        for (int bit = 0; bit < 64; ++bit) {
            const std::uint64_t forged = id ^ (std::uint64_t{1} << bit);
            const auto known = ids.find(forged);
            EXPECT_EQ(table.find(forged), known == ids.end() ? nullptr : known->second) << id << " bit " << bit;
        }
    }
}

TEST(HandleTable, forged_ids_find_nothing_but_ids_in_use) {
    constexpr unsigned kSeed = 4711;
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
    std::mt19937_64 random(kSeed);
    Table table;
    std::vector<Request> requests(1000);
    std::unordered_map<std::uint64_t, Request*> ids;
    for (Request& r : requests) ids[table.acquire(&r)] = &r;
    for (int i = 0; i < 100000; ++i) {
        const std::uint64_t forged = (random() % 8 * kGeneration) | (random() % 2000);
        const auto known = ids.find(forged);
        ASSERT_EQ(table.find(forged), known == ids.end() ? nullptr : known->second) << forged;
    }
}

TEST(HandleTable, an_id_is_not_given_again_soon) {
    Table table;
    Request a;
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 100000; ++i) {
        const std::uint64_t id = table.acquire(&a);
        ASSERT_TRUE(seen.insert(id).second) << "round " << i;
        table.release(id);
    }
}

TEST(HandleTable, is_full_at_its_limit_and_goes_on_after_a_release) {
    using Small = HandleTable<Request, 20000>;
    Small table;
    Request a;
    std::vector<std::uint64_t> ids;
    for (std::uint32_t i = 0; i < Small::kMaxSlots; ++i) ids.push_back(table.acquire(&a));
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size());
    EXPECT_EQ(table.acquire(&a), 0u);
    EXPECT_EQ(table.in_use(), Small::kMaxSlots);
    table.release(ids[12345]);
    const std::uint64_t again = table.acquire(&a);
    EXPECT_NE(again, 0u);
    EXPECT_EQ(table.find(again), &a);
    EXPECT_EQ(table.find(UINT64_MAX), nullptr);
}

// A process may have this many sends in flight. The table was once limited to 262144 ids.
TEST(Site10HandleTable, a_million_ids_are_found_each_by_its_own) {
    constexpr std::size_t kMany = 1 << 20;
    Table table;
    std::vector<Request> requests(kMany);
    std::vector<std::uint64_t> ids(kMany);
    for (std::size_t i = 0; i < kMany; ++i) {
        ids[i] = table.acquire(&requests[i]);
        ASSERT_NE(ids[i], 0u) << i;
    }
    EXPECT_EQ(table.in_use(), kMany);
    for (std::size_t i = 0; i < kMany; ++i) ASSERT_EQ(table.find(ids[i]), &requests[i]) << i;
    for (std::size_t i = 0; i < kMany; i += 2) table.release(ids[i]);
    for (std::size_t i = 0; i < kMany; ++i) ASSERT_EQ(table.find(ids[i]), i % 2 ? &requests[i] : nullptr) << i;
    EXPECT_EQ(table.in_use(), kMany / 2);
    for (std::size_t i = 0; i < kMany; i += 2) ids[i] = table.acquire(&requests[i]);
    for (std::size_t i = 0; i < kMany; ++i) ASSERT_EQ(table.find(ids[i]), &requests[i]) << i;
}

TEST(Site10HandleTable, the_slots_at_the_edges_of_chunks_are_all_different) {
    for (std::uint32_t count : {255u, 256u, 257u, 767u, 768u, 769u, 1791u, 1792u, 1793u}) {
        Table table;
        std::vector<Request> requests(count);
        std::set<std::uint64_t> ids;
        for (Request& r : requests) ids.insert(table.acquire(&r));
        EXPECT_EQ(ids.size(), count);
        EXPECT_EQ(static_cast<std::uint32_t>(*ids.rbegin()), count) << "slots are taken in order";
    }
}

TEST(HandleTable, agrees_with_a_map_under_random_use) {
    constexpr unsigned kSeed = 99;
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
    std::mt19937 random(kSeed);
    Table table;
    std::vector<Request> requests(600);
    std::unordered_map<std::uint64_t, Request*> model;
    std::vector<std::uint64_t> live, dead;
    for (int i = 0; i < 200000; ++i) {
        if (live.empty() || (live.size() < requests.size() && random() % 2)) {
            Request* r = &requests[random() % requests.size()];
            live.push_back(table.acquire(r));
            ASSERT_TRUE(model.emplace(live.back(), r).second);
        } else {
            const std::size_t at = random() % live.size();
            table.release(live[at]);
            model.erase(live[at]);
            dead.push_back(live[at]);
            live[at] = live.back();
            live.pop_back();
        }
        if (!live.empty()) {
            const std::uint64_t id = live[random() % live.size()];
            ASSERT_EQ(table.find(id), model.at(id));
        }
        if (!dead.empty()) {
            ASSERT_EQ(table.find(dead[random() % dead.size()]), nullptr);
        }
        ASSERT_EQ(table.in_use(), model.size());
    }
}

TEST(HandleTable, threads_get_ids_of_their_own) {
    Table table;
    std::atomic<int> strangers{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            std::vector<Request> requests(64);
            std::vector<std::uint64_t> ids(requests.size(), 0);
            std::mt19937 random(static_cast<unsigned>(t));
            for (int i = 0; i < 40000; ++i) {
                const std::size_t at = random() % requests.size();
                if (ids[at] == 0) {
                    ids[at] = table.acquire(&requests[at]);
                    continue;
                }
                if (table.find(ids[at]) != &requests[at]) ++strangers;
                table.release(ids[at]);
                if (table.find(ids[at])) ++strangers;
                ids[at] = 0;
            }
            for (std::uint64_t id : ids) table.release(id);
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(strangers, 0);
    EXPECT_EQ(table.in_use(), 0u);
}

TEST(HandleTable, looks_up_foreign_ids_safely_while_others_come_and_go) {
    Table table;
    std::vector<Request> first(1), others(1);
    std::atomic<std::uint64_t> id{table.acquire(&first[0])};
    std::atomic<bool> done{false};
    std::atomic<int> strangers{0};
    std::thread reader([&] {
        while (!done) {
            const std::uint64_t wanted = id;
            const Request* found = table.find(wanted);
            // find() returns the object of the id or, once the id is stale, nothing: never the slot's other user.
            if (found && found != &first[0]) ++strangers;
            if (table.in_use() > 2) ++strangers;
        }
    });
    for (int i = 0; i < 50000; ++i) {
        table.release(id);
        const std::uint64_t other = table.acquire(&others[0]);  // takes the slot
        table.release(other);
        id = table.acquire(&first[0]);
    }
    done = true;
    reader.join();
    EXPECT_EQ(strangers, 0);
}

// --- list ------------------------------------------------------------------

struct Element {
    int number = 0;
    ListNode node;
    ListNode other_node;
};
using Queue = List<Element, &Element::node>;
using OtherQueue = List<Element, &Element::other_node>;

template <class Q>
std::vector<int> numbers(Q& queue) {
    std::vector<int> out;
    for (Element* e = queue.front(); e; e = queue.next(e)) out.push_back(e->number);
    std::vector<int> backwards;
    for (Element* e = queue.back(); e; e = queue.prev(e)) backwards.insert(backwards.begin(), e->number);
    EXPECT_EQ(out, backwards);
    return out;
}

using Numbers = std::vector<int>;

TEST(List, keeps_the_order_of_insertion) {
    Element e[5] = {{0, {}, {}}, {1, {}, {}}, {2, {}, {}}, {3, {}, {}}, {4, {}, {}}};
    Queue queue;
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.front(), nullptr);
    EXPECT_EQ(queue.back(), nullptr);
    EXPECT_EQ(queue.pop_front(), nullptr);
    queue.push_back(&e[1]);
    queue.push_back(&e[3]);
    queue.push_front(&e[0]);
    queue.insert_after(&e[1], &e[2]);
    queue.insert_after(&e[3], &e[4]);
    EXPECT_EQ(numbers(queue), (Numbers{0, 1, 2, 3, 4}));
}

TEST(List, forgets_an_element_wherever_it_is) {
    Element e[4] = {{0, {}, {}}, {1, {}, {}}, {2, {}, {}}, {3, {}, {}}};
    Queue queue;
    for (Element& x : e) queue.push_back(&x);
    queue.remove(&e[1]);
    EXPECT_EQ(numbers(queue), (Numbers{0, 2, 3}));
    EXPECT_FALSE(e[1].node.linked());
    EXPECT_TRUE(e[2].node.linked());
    e[3].node.unlink();
    EXPECT_EQ(queue.pop_front(), &e[0]);
    EXPECT_EQ(numbers(queue), (Numbers{2}));
    queue.push_back(&e[1]);
    EXPECT_EQ(numbers(queue), (Numbers{2, 1}));
    EXPECT_EQ(queue.pop_front(), &e[2]);
    EXPECT_EQ(queue.pop_front(), &e[1]);
    EXPECT_TRUE(queue.empty());
}

TEST(List, an_element_is_in_two_lists_by_two_nodes) {
    Element e[2] = {{0, {}, {}}, {1, {}, {}}};
    Queue queue;
    OtherQueue other;
    queue.push_back(&e[0]);
    queue.push_back(&e[1]);
    other.push_front(&e[0]);
    other.push_front(&e[1]);
    queue.remove(&e[0]);
    EXPECT_EQ(numbers(queue), (Numbers{1}));
    EXPECT_EQ(numbers(other), (Numbers{1, 0}));
}

// --- spin lock and baton -----------------------------------------------------

TEST(SpinLock, lets_one_thread_in_at_a_time) {
    SpinLock lock;
    int count = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 20000; ++i) {
                std::lock_guard guard(lock);
                ++count;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(count, 80000);
}

TEST(Baton, a_thread_that_finds_it_taken_makes_the_runner_go_round_again) {
    Baton baton;
    ASSERT_TRUE(baton.take());
    EXPECT_FALSE(baton.take());
    EXPECT_FALSE(baton.take());
    EXPECT_FALSE(baton.pass()) << "two notes: once more";
    EXPECT_TRUE(baton.pass());
    EXPECT_TRUE(baton.take()) << "free again";
    baton.reset();
    EXPECT_TRUE(baton.take());
}

TEST(Baton, no_event_is_lost_and_one_thread_runs_at_a_time) {
    constexpr int kRounds = 30000;
    constexpr int kThreads = 4;
    Baton baton;
    std::atomic<std::uint64_t> events{0};
    std::atomic<int> runners{0};
    std::uint64_t handled = 0;  // only the runner changes it
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < kRounds; ++i) {
                events.fetch_add(1, std::memory_order_release);
                if (!baton.take()) continue;
                do {
                    EXPECT_EQ(runners.fetch_add(1), 0);
                    handled = events.load(std::memory_order_acquire);
                    runners.fetch_sub(1);
                } while (!baton.pass());
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(handled, std::uint64_t{kThreads} * kRounds);
}

}  // namespace
}  // namespace coop
