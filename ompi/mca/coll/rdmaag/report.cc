// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <bit>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "ompi/mca/shim/say.h"
#include "process.h"

namespace coop::ag {
namespace {

// Results of trials, a line each. A program with many communicators would print too many.
constexpr std::size_t kMaxLines = 100;
std::mutex lock;
std::vector<std::string>& lines() {
    static auto& all = *new std::vector<std::string>;
    return all;
}

const char* word(coll::Operation operation) noexcept {
    return operation == coll::Operation::kAllgather ? "allgather" : "allgatherv";
}

std::string word(const coll::Way& way) {
    if (way.shared_memory) return "shared memory";
    if (!way.algorithm) return "others";
    const std::string algorithm = coll::text(*way.algorithm);
    if (way.rings > 1) return std::to_string(way.rings) + " rings";
    if (way.packets) return algorithm + " in packets";
    return way.short_part == 1 ? algorithm : algorithm + "/" + std::to_string(way.short_part);
}

std::string microseconds(std::int64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f us", static_cast<double>(ns) / 1000);
    return text;
}

// All counts that are not 0.
std::string counts() {
    std::string text;
    const auto add = [&text](const char* what, const char* name, const Tally& counter) {
        if (const auto n = counter.read(); n > 0)
            text += std::string(" ") + what + name + " " + std::to_string(n) + ";";
    };
    for (std::size_t i = 0; i < coll::kAlgorithms; ++i)
        add("", coll::text(static_cast<coll::Algorithm>(i)), process.calls[i]);
    for (std::size_t i = 0; i < kLanes; ++i) add("", kLaneTexts[i], process.lanes[i]);
    for (std::size_t i = 0; i < coll::kReasons; ++i)
        add("chosen: ", coll::text(static_cast<coll::Reason>(i)), process.reasons[i]);
    for (std::size_t i = 0; i < std::size(kCountRows); ++i) add("", kCountRows[i].name, process.counts[i]);
    for (std::size_t i = 0; i < kWhyNots; ++i) add("left to others: ", kWhyNotTexts[i], process.left_to_others[i]);
    return text;
}

UsageLabels labels() {
    static const char* rows[Process::kUsageRows];
    static const char* reasons[Process::kUsageReasons];
    for (std::size_t i = 0; i < coll::kAlgorithms; ++i) rows[i] = coll::text(static_cast<coll::Algorithm>(i));
    for (std::size_t i = 0; i < kLanes; ++i) rows[Process::kLanesRow + i] = kLaneTexts[i];
    rows[Process::kOthersRow] = "others";
    for (std::size_t i = 0; i < coll::kReasons; ++i) reasons[i] = coll::text(static_cast<coll::Reason>(i));
    for (std::size_t i = 0; i < kWhyNots; ++i) reasons[coll::kReasons + i] = kWhyNotTexts[i];
    return {rows, reasons};
}

// In one write, so that the lines of processes do not mix.
void print() {
    const std::string counted = counts();
    if (counted.empty()) return;
    const std::string me = "coll/rdmaag: rank " + std::to_string(my_rank());
    std::string text = me + ":" + counted + "\n";
    if (process.config.report > 1) {
        text += format_table({me + ": calls", "algorithm", "block", "calls"}, process.usage, labels());
        for (const std::string& line : lines()) text += me + ": " + line + "\n";
    }
    std::fputs(text.c_str(), stderr);
}

// A duplicate of MPI_COMM_SELF does not report.
int do_not_copy(ompi_communicator_t*, int, void*, void*, void*, int* flag, ompi_communicator_t*) {
    *flag = 0;
    return MPI_SUCCESS;
}
int print_once(ompi_communicator_t*, int, void*, void*) {
    print();
    return MPI_SUCCESS;
}

}  // namespace

void report_at_finalize() noexcept {
    if (process.config.report == 0) return;
    if (process.config.report > 1) {
        process.usage = Usage(Process::kUsageRows, Process::kUsageReasons);
        process.usage.set_threads(process.threads);
    }
    ompi_attribute_fn_ptr_union_t on_copy{}, on_delete{};
    on_copy.attr_communicator_copy_fn = do_not_copy;
    on_delete.attr_communicator_delete_fn = print_once;
    int key = MPI_KEYVAL_INVALID;
    if (ompi_attr_create_keyval(COMM_ATTR, on_copy, on_delete, &key, nullptr, 0, nullptr) != OMPI_SUCCESS) return;
    auto* self = &ompi_mpi_comm_self.comm;
    ompi_attr_set_c(COMM_ATTR, self, &self->c_keyhash, key, nullptr, false);
}

void report_trials(ompi_communicator_t& comm, coll::Operation operation, std::uint64_t block,
                   const coll::Trials& trials) noexcept {
    if (process.config.report < 2 || ompi_comm_rank(&comm) != 0) return;
    std::string line = std::string(word(operation)) + ", " + std::to_string(ompi_comm_size(&comm)) +
                       " processes, blocks of " + human_bytes(std::bit_floor(block)) + " and more:";
    for (std::size_t i = 0; i < trials.ways().size(); ++i)
        line += " " + word(trials.ways()[i]) + " " + microseconds(trials.time_of(i)) + ";";
    line += " chosen: " + word(trials.winner().way);
    const std::lock_guard guard(lock);
    if (lines().size() < kMaxLines) lines().push_back(std::move(line));
}

}  // namespace coop::ag
