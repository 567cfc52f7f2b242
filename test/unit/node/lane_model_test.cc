// SPDX-License-Identifier: BSD-3-Clause
// node/lane_ring.h, node/lane_parts.h on a model of weakly ordered memory, which a ring without one of its orders does not
// survive.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "coop/node/lane_parts.h"
#include "coop/node/lane_ring.h"

namespace coop::node {
namespace {

// -- the model ------------------------------------------------------------------------------------------------------
//
// Memory as the views of C++'s release and acquire (Kang et al., POPL 2017, without promises): each place has a list of
// stores; a thread may read any that is not older than what it has seen of this place. A release store carries what its
// thread has seen, and an acquire load takes that over. In addition, plain loads of the reader may be late: they happen
// at any time until its next release store. So aarch64 allows what the model does.

struct Orders {
    bool publish = true, consume = true, free = true, clear = true;
};

using View = std::vector<std::uint32_t>;

class Model {
public:
    Model(std::uint32_t places, unsigned seed) : stores_(places, {{0, {}}}), random_(seed) {}

    std::uint64_t load(View& seen, std::uint32_t place, bool acquire) {
        const Store& store = choose(place, seen[place]);
        if (acquire)
            for (std::size_t i = 0; i < store.view.size(); ++i) seen[i] = std::max(seen[i], store.view[i]);
        return store.value;
    }
    // A late load: any store not older than `oldest`, as of now.
    std::uint64_t load_late(std::uint32_t place, std::uint32_t oldest) { return choose(place, oldest).value; }

    void store(View& seen, std::uint32_t place, std::uint64_t value, bool release) {
        seen[place] = static_cast<std::uint32_t>(stores_[place].size());
        stores_[place].push_back({value, release ? seen : View{}});
    }
    unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }
    std::uint32_t places() const { return static_cast<std::uint32_t>(stores_.size()); }

private:
    struct Store {
        std::uint64_t value;
        View view;  // empty: not a release
    };
    const Store& choose(std::uint32_t place, std::uint32_t& oldest) {
        auto& all = stores_[place];
        oldest += pick(static_cast<unsigned>(all.size()) - oldest);
        return all[oldest];
    }
    const Store& choose(std::uint32_t place, const std::uint32_t& oldest) {
        auto& all = stores_[place];
        return all[oldest + pick(static_cast<unsigned>(all.size()) - oldest)];
    }

    std::vector<std::vector<Store>> stores_;
    std::minstd_rand random_;
};

constexpr std::uint32_t kModelRing = 1024;
constexpr std::uint32_t kFreedPlace = kModelRing / 8;
constexpr std::uint32_t kSlotPlace = kFreedPlace + 1, kSlotPlaces = 40;
constexpr std::uint32_t kOneDirection = kSlotPlace + kSlotPlaces;  // places

struct Late {
    std::uint32_t place, oldest;
    std::uint64_t expected;
};

// What one thread sees of the model.
struct ModelThread {
    ModelThread(Model* of, Orders in) : model(of), orders(in) {}

    Model* model;
    Orders orders;
    View seen = View(model->places(), 0);
    std::deque<Late> late;
    bool wrong = false;

    void do_late_load() {
        const Late load = late.front();
        late.pop_front();
        if (model->load_late(load.place, load.oldest) != load.expected) wrong = true;
    }
};

struct ModelMemory {
    ModelThread* thread = nullptr;
    std::uint32_t first = 0;  // place of the ring
    std::uint64_t load_word(std::uint32_t at) { return load(at / 8); }
    void clear_word(std::uint32_t at) {
        if (thread->orders.clear) thread->model->store(thread->seen, first + at / 8, 0, false);
    }
    void prepare_to_write(std::uint32_t, std::uint32_t) {}
    void prepare_to_read(std::uint32_t, std::uint32_t) {}
    void prepare_to_read_slot(std::uint32_t) {}
    void publish_word(std::uint32_t at, std::uint64_t word) { publish(at / 8, word); }
    std::uint64_t load_freed() { return thread->model->load(thread->seen, first + kFreedPlace, true); }
    void store_freed(std::uint64_t position) { release(kFreedPlace, position, thread->orders.free); }
    std::uint64_t load_slot() { return load(kSlotPlace); }
    void publish_slot(std::uint64_t word) { publish(kSlotPlace, word); }

private:
    std::uint64_t load(std::uint32_t place) {
        return thread->model->load(thread->seen, first + place, thread->orders.consume);
    }
    void publish(std::uint32_t place, std::uint64_t word) { release(place, word, thread->orders.publish); }
    void release(std::uint32_t place, std::uint64_t value, bool in_order) {
        while (in_order && !thread->late.empty()) thread->do_late_load();
        thread->model->store(thread->seen, first + place, value, in_order);
    }
};

// Runs writer and reader in a random order of steps. Returns false if the reader has read anything that was not written
// as it is, or in another order.
bool survives(Orders orders, unsigned seed) {
    Model model(kOneDirection, seed);
    ModelThread writes(&model, orders), reads(&model, orders);
    // In half of the runs only the beginning is used until it is full for the second time.
    const std::uint32_t first = seed % 2 == 0 ? kModelRing : kModelRing / 2;
    LaneWriter<ModelMemory> writer(ModelMemory{&writes}, kModelRing, first);
    LaneReader<ModelMemory> reader(ModelMemory{&reads}, kModelRing);
    constexpr std::uint32_t kRecords = 60;
    int full = 0;
    // Several records of one line in a row, several of any length, several of the same length.
    const auto words_of = [](std::uint32_t n) {
        const std::uint32_t kind = n / 6 % 3;
        return kind == 2 ? 9 + n / 18 * 8 : 1 + n * 5 % (kind == 0 ? 7 : 29);
    };
    // Each word of a record could be taken for the word of a record with the wrong length.
    const auto value = [](std::uint32_t n, std::uint32_t i) { return lane_word(2, (n + i) % 64); };
    std::uint32_t written = 0, read = 0;
    for (int step = 0; step < 20000 && read < kRecords; ++step) {
        if (written < kRecords && model.pick(2) == 0) {
            const std::uint32_t words = words_of(written);
            // More may be reserved and written than is published, or nothing is published at first.
            const std::uint32_t reserved = model.pick(4) == 0 ? std::max(words, 40u) : words;
            const auto at = writer.reserve(reserved * 8);
            if (!at && ++full > 1) writer.use(kModelRing);
            if (!at) continue;
            for (std::uint32_t i = 0; i < reserved; ++i)
                model.store(writes.seen, *at / 8 + i, value(written, i), false);
            if (model.pick(8) == 0) continue;
            writer.publish(1, words * 8, model.pick(2) == 0);
            ++written;
            continue;
        }
        if (!reads.late.empty() && model.pick(3) == 0) reads.do_late_load();
        const auto record = reader.look();
        if (!record) continue;
        const std::uint32_t words = words_of(read);
        if (record->kind != 1 || record->bytes != words * 8) return false;
        for (std::uint32_t i = 0; i < words; ++i) {
            const std::uint32_t place = record->at / 8 + i;
            reads.late.push_back({place, reads.seen[place], value(read, i)});
        }
        // Loads after an acquire are not early; most happen now, some late.
        while (reads.late.size() > 12) reads.do_late_load();
        reader.pass(*record);
        ++read;
    }
    while (!reads.late.empty()) reads.do_late_load();
    return !reads.wrong && read == kRecords;
}

// The same with records that the writer publishes first and then writes in parts.
bool parts_survive(Orders orders, unsigned seed) {
    Model model(kOneDirection, seed);
    ModelThread writes(&model, orders), reads(&model, orders);
    const ModelMemory to{&writes}, from{&reads};
    LaneWriter<ModelMemory> writer(to, kModelRing);
    LaneReader<ModelMemory> reader(from, kModelRing);
    constexpr std::uint32_t kRecords = 60, kPart = 3;
    const auto words_of = [](std::uint32_t n) { return 1 + n * 7 % 29; };
    const auto value = [](std::uint32_t n, std::uint32_t i) { return lane_word(2, (n + i) % 64); };
    std::uint32_t begun = 0, written = 0, read = 0, taken = 0;
    LanePlace at;  // of the record that is being written
    for (int step = 0; step < 40000 && read < kRecords; ++step) {
        if (begun < kRecords && model.pick(2) == 0) {
            const std::uint32_t words = words_of(begun);
            if (!at) {
                at = writer.reserve(8 + words * 8);
                written = 0;
                if (!at) continue;
                LaneParts<ModelMemory>(to, *at).begin();
                writer.publish(1, 8 + words * 8);
                continue;
            }
            const std::uint32_t end = std::min(written + kPart, words);
            for (; written < end; ++written)
                model.store(writes.seen, *at / 8 + 1 + written, value(begun, written), false);
            LaneParts<ModelMemory>(to, *at).tell(written * 8);
            if (written == words) ++begun, at = {};
            continue;
        }
        if (!reads.late.empty() && model.pick(3) == 0) reads.do_late_load();
        const auto record = reader.look();
        if (!record) continue;
        const std::uint32_t words = words_of(read);
        if (record->kind != 1 || record->bytes != 8 + words * 8) return false;
        const std::uint32_t end = LaneParts<ModelMemory>(from, record->at).written(taken * 8, words * 8) / 8;
        for (; taken < end; ++taken) {
            const std::uint32_t place = record->at / 8 + 1 + taken;
            reads.late.push_back({place, reads.seen[place], value(read, taken)});
        }
        while (reads.late.size() > 12) reads.do_late_load();
        if (taken < words) continue;
        reader.pass(*record);
        ++read;
        taken = 0;
    }
    while (!reads.late.empty()) reads.do_late_load();
    return !reads.wrong && read == kRecords;
}

// One process sends records, also through the slot; the other one answers now and then, and its words tell what it has taken. It
// finishes its late loads before it publishes an answer.
int in_slot = 0;
bool slot_survives(Orders orders, unsigned seed) {
    Model model(2 * kOneDirection, seed);
    ModelThread asks(&model, orders), answers(&model, orders);
    LaneWriter<ModelMemory> writer(ModelMemory{&asks}, kModelRing),
        answer_writer(ModelMemory{&answers, kOneDirection}, kModelRing);
    LaneReader<ModelMemory> reader(ModelMemory{&answers}, kModelRing),
        answer_reader(ModelMemory{&asks, kOneDirection}, kModelRing);
    constexpr std::uint32_t kRecords = 60;
    // The ring has room for a record of 25 words, with a skip before it, when the reader has told of one half.
    const auto words_of = [](std::uint32_t n) { return n % 5 == 4 ? 3u : 25u; };
    const auto value = [](std::uint32_t n, std::uint32_t i) { return lane_word(2, (n + i) % 64); };
    std::uint32_t written = 0, read = 0, unanswered = 0;
    bool is_answer = true, confirmed = false;
    for (int step = 0; step < 40000 && read < kRecords; ++step) {
        if (model.pick(2) == 0) {
            if (const auto record = answer_reader.look()) {
                if (record->kind != 3) return false;
                confirmed = record->taken;
                is_answer = true;
                answer_reader.pass(*record);
            }
            if (written == kRecords || (!is_answer && model.pick(16) > 0)) continue;
            const std::uint32_t words = words_of(written);
            const auto write_at = [&](std::uint32_t place) {
                for (std::uint32_t i = 0; i < words; ++i) model.store(asks.seen, place + i, value(written, i), false);
            };
            if (written == 3) writer.use_slot();
            if (is_answer && writer.takes_slot(words * 8, confirmed)) {
                write_at(kSlotPlace + 1);
                writer.publish_slot(1, words * 8, false);
                ++in_slot;
            } else {
                const auto at = writer.reserve(words * 8);
                if (!at) continue;
                write_at(*at / 8);
                writer.publish(1, words * 8, is_answer);
            }
            is_answer = false;
            ++written;
            continue;
        }
        if (!answers.late.empty() && model.pick(3) == 0) answers.do_late_load();
        if (const auto record = reader.look()) {
            const std::uint32_t words = words_of(read);
            if (record->kind != 1 || record->bytes != words * 8) return false;
            for (std::uint32_t i = 0; i < words; ++i) {
                const std::uint32_t place = (record->is_in_slot() ? kSlotPlace + 1 : record->at / 8) + i;
                answers.late.push_back({place, answers.seen[place], value(read, i)});
            }
            while (answers.late.size() > 12) answers.do_late_load();
            if (record->is_in_slot()) reader.pass_slot();
            else reader.pass(*record);
            ++read;
            ++unanswered;
        }
        if (unanswered == 0 || model.pick(3) > 0 || !answer_writer.reserve(8)) continue;
        unanswered = 0;
        answer_writer.publish(3, 8, true, reader.turn());
    }
    while (!answers.late.empty()) answers.do_late_load();
    return !answers.wrong && read == kRecords;
}

int failures(Orders orders, int runs, bool (*survive)(Orders, unsigned) = survives) {
    int count = 0;
    for (int seed = 1; seed <= runs; ++seed)
        if (!survive(orders, static_cast<unsigned>(seed))) ++count;
    return count;
}

TEST(LaneRingModel, survives_weakly_ordered_memory) { EXPECT_EQ(failures({}, 2000), 0); }

TEST(LaneRingModel, would_fail_if_publishing_did_not_release) { EXPECT_GT(failures({.publish = false}, 200), 20); }

TEST(LaneRingModel, would_fail_if_reading_a_word_did_not_acquire) { EXPECT_GT(failures({.consume = false}, 200), 20); }

TEST(LaneRingModel, would_fail_if_telling_what_is_read_did_not_release) {
    EXPECT_GT(failures({.free = false}, 200), 20);
}

TEST(LaneRingModel, would_fail_if_the_next_word_were_not_cleared) { EXPECT_GT(failures({.clear = false}, 200), 20); }

TEST(LaneSlotModel, survives_weakly_ordered_memory) {
    in_slot = 0;
    EXPECT_EQ(failures({}, 2000, slot_survives), 0);
    EXPECT_GT(in_slot, 2000 * 10);
}

TEST(LaneSlotModel, would_fail_if_publishing_did_not_release) {
    EXPECT_GT(failures({.publish = false}, 200, slot_survives), 20);
}

TEST(LaneSlotModel, would_fail_if_reading_a_word_did_not_acquire) {
    EXPECT_GT(failures({.consume = false}, 200, slot_survives), 20);
}

TEST(LanePartsModel, survive_weakly_ordered_memory) { EXPECT_EQ(failures({}, 2000, parts_survive), 0); }

TEST(LanePartsModel, would_fail_if_telling_what_is_written_did_not_release) {
    EXPECT_GT(failures({.publish = false}, 200, parts_survive), 20);
}

TEST(LanePartsModel, would_fail_if_reading_that_did_not_acquire) {
    EXPECT_GT(failures({.consume = false}, 200, parts_survive), 20);
}

TEST(LanePartsModel, would_fail_if_it_were_not_zero_at_first) {
    EXPECT_GT(failures({.clear = false}, 200, parts_survive), 20);
}

}  // namespace
}  // namespace coop::node
