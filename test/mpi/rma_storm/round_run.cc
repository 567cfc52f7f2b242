// SPDX-License-Identifier: BSD-3-Clause
#include "round_run.h"

#include <thread>

#include "issuer.h"

namespace rma_storm {

RoundRun::RoundRun(const Options& options, const Arena& arena, const Round& round, State* states, int threads,
                   Saboteur& saboteur)
    : options_(options), arena_(arena), round_(round), states_(states), threads_(threads), saboteur_(saboteur),
      random_(pattern::key({round.key, 17, static_cast<std::uint64_t>(arena.rank)})),
      window_(round, arena.comm, [this](int code, const char* function) { must(code, function); }),
      model_(round, arena.rank) {}

void RoundRun::failed(const State& state, const std::string& what) const {
    fail(options_, state,
         "round " + std::to_string(state.round) + ", phase " + std::to_string(index_) + " (" + name_of(phase().kind) +
             ", " + std::to_string(round_.size) + " ranks " + arena_.name + ", rank " + std::to_string(arena_.rank) +
             "), window " + name_of(round_.window.kind) + ": " + what);
}

void RoundRun::run() {
    for (index_ = 0; index_ < round_.phases.size(); ++index_) run_phase();
    state().now("freeing the window");
}

void RoundRun::run_phase() {
    for (int t = 0; t < threads_; ++t) {
        states_[t].phase = index_;
        states_[t].epoch = name_of(phase().kind);
        states_[t].window = name_of(round_.window.kind);
    }
    fetched_.assign(phase().operations.size(), {});
    model_.begin_phase(phase());
    open();
    issue();
    resolve_outcomes();
    if (phase().check) check_window();
    if (phase().barrier) {
        state().now("in the barrier behind a phase");
        barrier();
    }
}

// All threads issue their operations; then the epoch is closed and all results are compared.
void RoundRun::issue() {
    std::vector<std::unique_ptr<Issuer>> issuers;
    std::vector<std::thread> others;
    for (int t = 0; t < threads_; ++t) issuers.push_back(std::make_unique<Issuer>(*this, t, states_[t]));
    for (int t = 1; t < threads_; ++t) others.emplace_back([&, t] { issuers[static_cast<std::size_t>(t)]->run(); });
    issuers[0]->run();
    for (std::thread& t : others) t.join();
    close();
    for (auto& issuer : issuers) issuer->finish_all();
}

}  // namespace rma_storm
