// SPDX-License-Identifier: BSD-3-Clause
#include "hints.h"

#include <string>
#include <string_view>
#include <utility>

#include "diagnose.h"

namespace coop::pml {
namespace {

// Reports a refused value once, not again for each message.
void refuse_once(const ParamError& error) noexcept {
    static std::string refused;  // under Module::lock
    Guard guard(module.lock);
    const std::string what = error.name + "=" + error.value;
    if (std::exchange(refused, what) != what) parameter_ignored(error);
}

const ParamRow& row_named(std::string_view name) noexcept {
    for (const ParamRow& row : params())
        if (row.name == name) return row;
    return params().front();  // not reached: the names below are rows
}

// Sets the hint of the info key coop_<name>, which takes the values of the parameter pml_coop_<name>. Returns the value
// that the communicator's info then has; null: none.
char* set_hint(std::atomic<std::int8_t>& hint, const char* name, const char* value) noexcept {
    const ParamRow& row = row_named(name);
    if (value && *value) {
        if (const auto index = choice_index(row, value))
            hint.store(static_cast<std::int8_t>(*index), std::memory_order_relaxed);
        else refuse_once({name, value, range_words(row)});
    }
    const std::int8_t now = hint.load(std::memory_order_relaxed);
    return now < 0 ? nullptr : const_cast<char*>(row.choices[static_cast<std::size_t>(now)]);
}

Comm& comm_of(opal_infosubscriber_t* object) noexcept { return of(reinterpret_cast<ompi_communicator_t*>(object)); }

extern "C" char* mca_pml_coop_set_protocol_hint(opal_infosubscriber_t* object, char*, char* value) {
    return set_hint(comm_of(object).protocol_hint, "protocol", value);
}
extern "C" char* mca_pml_coop_set_overlap_hint(opal_infosubscriber_t* object, char*, char* value) {
    return set_hint(comm_of(object).overlap_hint, "overlap", value);
}

Overlap overlap_for(ompi_communicator_t* comm) noexcept {
    const std::int8_t hint = of(comm).overlap_hint.load(std::memory_order_relaxed);
    return static_cast<Overlap>(hint >= 0 ? hint : std::int64_t{module.config.overlap});
}

}  // namespace

void take_in_written_parameters() noexcept {
    if (!is_rewritten(module.given, module.config)) return;
    if (auto error = take_rewritten(module.given, module.config)) refuse_once(*error);
}

void subscribe_hints(ompi_communicator_t* comm) noexcept {
    static char protocol[] = "coop_protocol", overlap[] = "coop_overlap", nothing[] = "";
    opal_infosubscribe_subscribe(&comm->super, protocol, nothing, mca_pml_coop_set_protocol_hint);
    opal_infosubscribe_subscribe(&comm->super, overlap, nothing, mca_pml_coop_set_overlap_hint);
}

rndv::Wish wish_for(ompi_communicator_t* comm) noexcept {
    const std::int8_t hint = of(comm).protocol_hint.load(std::memory_order_relaxed);
    return static_cast<rndv::Wish>(hint >= 0 ? hint : std::int64_t{module.config.protocol});
}

rndv::SendCall call_for(ompi_communicator_t* comm, rndv::SendCall call) noexcept {
    if (call == rndv::SendCall::kBsend) return call;
    switch (overlap_for(comm)) {
    case Overlap::kYes: return rndv::SendCall::kIsend;
    case Overlap::kNo: return call == rndv::SendCall::kIsend ? rndv::SendCall::kSend : call;
    case Overlap::kAuto: break;
    }
    return call;
}

rndv::RecvCall call_for(ompi_communicator_t* comm, rndv::RecvCall call) noexcept {
    switch (overlap_for(comm)) {
    case Overlap::kYes: return rndv::RecvCall::kIrecv;
    case Overlap::kNo: return rndv::RecvCall::kRecv;
    case Overlap::kAuto: break;
    }
    return call;
}

}  // namespace coop::pml
