// SPDX-License-Identifier: BSD-3-Clause
#include "window.h"

#include <algorithm>
#include <cstring>

namespace rma_storm {
namespace {

constexpr unsigned char kUntouched = 0xA5;

}  // namespace

Window::Window(const Round& round, MPI_Comm comm, const Must& must) : round_(round) {
    MPI_Comm_rank(comm, &self_);
    const auto n = static_cast<std::size_t>(round.size);
    bases_.resize(n);
    for (std::size_t rank = 0; rank < n; ++rank) bases_[rank].resize(round.window.segments[rank].size());
    auto& own_bases = bases_[static_cast<std::size_t>(self_)];
    if (round.window.kind == WindowKind::kCreated || round.window.kind == WindowKind::kDynamic) {
        for (std::size_t s = 0; s < own_bases.size(); ++s) {
            guarded_.emplace_back(segments(self_)[s].bytes + 2 * kGuard, kUntouched);
            own_bases[s] = guarded_.back().data() + kGuard;
        }
    }
    create(comm, must);
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
    if (round.window.kind == WindowKind::kDynamic) attach(comm, must);
    if (round.window.kind == WindowKind::kShared) find_neighbours(must);
}

Window::~Window() {
    if (round_.window.kind == WindowKind::kDynamic)
        for (unsigned char* base : bases_[static_cast<std::size_t>(self_)]) MPI_Win_detach(window_, base);
    MPI_Win_free(&window_);
}

MPI_Info Window::make_info() const {
    const WindowPlan& plan = round_.window;
    if (!plan.hints) return MPI_INFO_NULL;
    MPI_Info info;
    MPI_Info_create(&info);
    bool same_bytes = true, same_unit = true;
    for (int rank = 1; rank < round_.size; ++rank) {
        same_bytes = same_bytes && plan.bytes(rank) == plan.bytes(0);
        same_unit = same_unit && plan.unit[static_cast<std::size_t>(rank)] == plan.unit[0];
    }
    if (plan.no_locks) MPI_Info_set(info, "no_locks", "true");
    if (plan.unordered) MPI_Info_set(info, "accumulate_ordering", "none");
    if (plan.one_operation) MPI_Info_set(info, "accumulate_ops", "same_op_no_op");
    if (plan.noncontiguous) MPI_Info_set(info, "alloc_shared_noncontig", "true");
    if (same_bytes && plan.kind != WindowKind::kDynamic) MPI_Info_set(info, "same_size", "true");
    if (same_unit) MPI_Info_set(info, "same_disp_unit", "true");
    return info;
}

void Window::create(MPI_Comm comm, const Must& must) {
    const int unit = round_.window.unit[static_cast<std::size_t>(self_)];
    unsigned char*& base = bases_[static_cast<std::size_t>(self_)].front();
    const auto bytes = static_cast<MPI_Aint>(round_.window.bytes(self_));
    MPI_Info info = make_info();
    switch (round_.window.kind) {
    case WindowKind::kCreated: must(MPI_Win_create(base, bytes, unit, info, comm, &window_), "MPI_Win_create"); break;
    case WindowKind::kAllocated:
        must(MPI_Win_allocate(bytes, unit, info, comm, &base, &window_), "MPI_Win_allocate");
        break;
    case WindowKind::kShared:
        must(MPI_Win_allocate_shared(bytes, unit, info, comm, &base, &window_), "MPI_Win_allocate_shared");
        break;
    case WindowKind::kDynamic: must(MPI_Win_create_dynamic(info, comm, &window_), "MPI_Win_create_dynamic"); break;
    }
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
}

void Window::attach(MPI_Comm comm, const Must& must) {
    std::size_t most = 1;
    for (const auto& list : round_.window.segments) most = std::max(most, list.size());
    std::vector<MPI_Aint> own(most), all(most * static_cast<std::size_t>(round_.size));
    for (std::size_t s = 0; s < segments(self_).size(); ++s) {
        unsigned char* base = bases_[static_cast<std::size_t>(self_)][s];
        must(MPI_Win_attach(window_, base, static_cast<MPI_Aint>(segments(self_)[s].bytes)), "MPI_Win_attach");
        MPI_Get_address(base, &own[s]);
    }
    MPI_Allgather(own.data(), static_cast<int>(most), MPI_AINT, all.data(), static_cast<int>(most), MPI_AINT, comm);
    for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(most))
        remote_.emplace_back(at, at + static_cast<std::ptrdiff_t>(most));
}

void Window::find_neighbours(const Must& must) {
    for (int rank = 0; rank < round_.size; ++rank) {
        MPI_Aint bytes = 0;
        int unit = 0;
        unsigned char* base = nullptr;
        must(MPI_Win_shared_query(window_, rank, &bytes, &unit, &base), "MPI_Win_shared_query");
        if (rank == self_ && bytes != 0 && base != bases_[static_cast<std::size_t>(rank)].front())
            must(MPI_ERR_BASE, "MPI_Win_shared_query (another address than MPI_Win_allocate_shared gave)");
        if (static_cast<std::size_t>(bytes) != round_.window.bytes(rank))
            must(MPI_ERR_SIZE, "MPI_Win_shared_query (another size than the rank asked for)");
        if (unit != round_.window.unit[static_cast<std::size_t>(rank)])
            must(MPI_ERR_DISP, "MPI_Win_shared_query (another displacement unit than the rank asked for)");
        bases_[static_cast<std::size_t>(rank)].front() = base;
    }
}

std::size_t Window::segment_of(int rank, std::size_t at) const {
    const std::vector<Segment>& list = segments(rank);
    std::size_t s = 0;
    while (s + 1 < list.size() && list[s + 1].at <= at) ++s;
    return s;
}

MPI_Aint Window::displacement(int target, std::size_t at) const {
    const auto rank = static_cast<std::size_t>(target);
    if (round_.window.kind != WindowKind::kDynamic)
        return static_cast<MPI_Aint>(at / static_cast<std::size_t>(round_.window.unit[rank]));
    const std::size_t s = segment_of(target, at);
    return MPI_Aint_add(remote_[rank][s], static_cast<MPI_Aint>(at - segments(target)[s].at));
}

std::size_t Window::shift(int target, std::size_t at) const {
    return at % static_cast<std::size_t>(round_.window.unit[static_cast<std::size_t>(target)]);
}

unsigned char* Window::memory(int rank, std::size_t at) const {
    const std::size_t s = segment_of(rank, at);
    return bases_[static_cast<std::size_t>(rank)][s] + (at - segments(rank)[s].at);
}

void Window::store(std::size_t at, const unsigned char* content, std::size_t bytes) const {
    if (bytes != 0) std::memcpy(own(at), content, bytes);
}

std::size_t Window::mismatch(const Bytes& content) const {
    for (const Segment& s : segments(self_)) {
        if (s.bytes == 0 || std::memcmp(own(s.at), content.data() + s.at, s.bytes) == 0) continue;
        std::size_t at = s.at;
        while (*own(at) == content[at]) ++at;
        return at;
    }
    return pattern::kNone;
}

std::string Window::damaged_guard() const {
    for (std::size_t s = 0; s < guarded_.size(); ++s) {
        const Bytes& memory = guarded_[s];
        const std::size_t bytes = memory.size() - 2 * kGuard;
        for (std::size_t i = 0; i < kGuard; ++i) {
            if (memory[i] != kUntouched)
                return "byte -" + std::to_string(kGuard - i) + " before segment " + std::to_string(s) + " was written";
            if (memory[kGuard + bytes + i] != kUntouched)
                return "byte +" + std::to_string(i) + " behind segment " + std::to_string(s) + " (of " +
                       std::to_string(bytes) + " bytes) was written";
        }
    }
    return "";
}

}  // namespace rma_storm
