// SPDX-License-Identifier: BSD-3-Clause
//
// The rails of a channel by their numbers. The number of a rail is that of its
// path. Both sides compute the same paths, so a number denotes the same rail on both.
// A rail keeps its number for the lifetime of the channel.
//
//     number     0      1      2          3
//     rail       up     -      closed     up          -: could not be made
//     for (Rail& rail : rails)            0 and 3: the rails that are up
//
// Threading: none; the caller holds the lock of the channel. Ownership: this owns
// the rails. Errors: none.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "coop/rail/failure.h"
#include "coop/sched/rail_set.h"

namespace coop::rail {

// `Rail` must have a member `state`. After put() only this class changes it.
template <class Rail>
class Rails {
public:
    // Gives the rail the next number. A null rail uses up a number, too. Precondition: fewer than kMaxRails calls so
    // far.
    Rail* put(std::unique_ptr<Rail> rail) {
        all_.push_back(std::move(rail));
        Rail* const put = all_.back().get();
        if (put != nullptr && put->state == RailState::kUp)
            up_ |= sched::bit_of(static_cast<sched::RailIndex>(all_.size() - 1));
        return put;
    }

    // Exchanges the rail, which must exist, and its queue pair for reads, which may be null. Returns the old ones.
    std::pair<std::unique_ptr<Rail>, std::unique_ptr<Rail>> replace(sched::RailIndex number, std::unique_ptr<Rail> rail,
                                                                    std::unique_ptr<Rail> reader) {
        all_[number].swap(rail);
        if (number >= readers_.size()) readers_.resize(all_.size());
        readers_[number].swap(reader);
        set_state(number, all_[number]->state);
        return {std::move(rail), std::move(reader)};
    }

    // Gives the rail `number` a second queue pair, which carries its reads if it is up. Precondition: the rail exists.
    void put_reader(sched::RailIndex number, std::unique_ptr<Rail> reader) {
        readers_.resize(all_.size());
        readers_[number] = std::move(reader);
    }
    // The queue pair for reads; null: there is none, or it did not open.
    Rail* reader(sched::RailIndex number) const noexcept {
        Rail* const reader = any_reader(number);
        return reader != nullptr && reader->state != RailState::kClosed ? reader : nullptr;
    }
    // Also one that did not open: its probe may still complete.
    Rail* any_reader(sched::RailIndex number) const noexcept {
        return number < readers_.size() ? readers_[number].get() : nullptr;
    }

    std::size_t numbers() const noexcept { return all_.size(); }
    Rail& operator[](sched::RailIndex number) const noexcept { return *all_[number]; }  // must exist
    Rail* find(sched::RailIndex number) const noexcept { return number < all_.size() ? all_[number].get() : nullptr; }
    sched::RailMask up() const noexcept { return up_; }

    // Calls each(rail) for the rail, if it could be made, and for its queue pair for reads.
    template <class Each>
    void for_both(sched::RailIndex number, Each each) const {
        if (Rail* const rail = find(number)) each(*rail);
        if (Rail* const its_reader = reader(number)) each(*its_reader);
    }

    void set_state(sched::RailIndex number, RailState state) noexcept {
        all_[number]->state = state;
        up_ = state == RailState::kUp ? up_ | sched::bit_of(number) : up_ & ~sched::bit_of(number);
    }

    class Iterator {
    public:
        Iterator(const Rails& rails, sched::RailMask left) noexcept : rails_(rails), number_{left} {}
        Rail& operator*() const noexcept { return rails_[*number_]; }
        Iterator& operator++() noexcept {
            ++number_;
            return *this;
        }
        bool operator!=(const Iterator& other) const noexcept { return number_ != other.number_; }

    private:
        const Rails& rails_;
        sched::RailIterator number_;
    };
    Iterator begin() const noexcept { return {*this, up_}; }
    Iterator end() const noexcept { return {*this, 0}; }

private:
    std::vector<std::unique_ptr<Rail>> all_;
    std::vector<std::unique_ptr<Rail>> readers_;  // by number; those that did not open are kept until the rails end
    sched::RailMask up_ = 0;
};

}  // namespace coop::rail
