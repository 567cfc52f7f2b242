// SPDX-License-Identifier: BSD-3-Clause
//
// The component: registers the parameters and starts the module for all HCAs. It is
// used only if the parameter btl names it (--mca btl coopib,…); installing it changes
// nothing.
#include "component.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "coop_config.h"
#include "coop/rail/verbs/fork.h"
#include "coop/sched/packet_limit.h"
#include "diagnose.h"
#include "entry.h"
#include "extension.h"
#include "migration.h"
#include "module.h"
#include "nearness.h"
#include "procs.h"
#include "progress.h"
#include "pvars.h"
#include "queue_pairs.h"
#include "registration.h"

namespace coop::ib {

ModuleHolder module_holder;

ModuleHolder::~ModuleHolder() {
    if (value.connections) value.connections->stop_thread();
}

std::uint32_t local_rank() noexcept {
    return static_cast<std::uint32_t>(std::max<std::int32_t>(opal_process_info.my_local_rank, 0));
}

namespace {

constexpr std::size_t kFragmentBytes = 16 * 1024 + 128;  // 16 KiB with the headers of the upper layer
constexpr std::size_t kMostFragmentBytes = 1 << 20, kLeastFragmentBytes = 256;
constexpr int kFirstCqEntries = 1024;
constexpr std::uint32_t kFixedCqEntries = 1 << 16;
constexpr std::size_t kMostOperationBytes = 1 << 30;
static_assert(kMostOperationBytes <= UINT32_MAX, "StripeWork::bytes");

void set_defaults(mca_btl_base_module_t& b) {
    b.btl_component = &mca_btl_coopib_component;
    b.btl_exclusivity = MCA_BTL_EXCLUSIVITY_DEFAULT - 1;  // lower than that of btl/openib
    b.btl_eager_limit = b.btl_rndv_eager_limit = b.btl_max_send_size = kFragmentBytes;
    b.btl_rdma_pipeline_send_length = b.btl_rdma_pipeline_frag_size = 1 << 30;
    b.btl_min_rdma_pipeline_size = 0;
    b.btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_PUT | MCA_BTL_FLAGS_GET | MCA_BTL_FLAGS_ATOMIC_FOPS |
                  MCA_BTL_FLAGS_RDMA_FLUSH;
    b.btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_CSWAP;
    b.btl_latency = 4;
    b.btl_bandwidth = 0;
    b.btl_registration_handle_size = sizeof(Handle);
    b.btl_get_limit = b.btl_put_limit = kMostOperationBytes;
    b.btl_get_alignment = b.btl_put_alignment = 0;
    b.btl_add_procs = add_procs;
    b.btl_del_procs = del_procs;
    b.btl_finalize = finalize;
    b.btl_alloc = alloc;
    b.btl_free = give_back;
    b.btl_prepare_src = prepare_src;
    b.btl_send = send;
    b.btl_sendi = send_immediately;
    b.btl_put = put;
    b.btl_get = get;
    b.btl_atomic_fop = fetch_and;
    b.btl_atomic_cswap = compare_and_swap;
    b.btl_flush = flush;
    b.btl_register_mem = register_memory;
    b.btl_deregister_mem = deregister_memory;
    b.btl_register_error = register_error;
    b.btl_dump = mca_btl_base_dump;
}

extern "C" int mca_btl_coopib_register(void) {
    for (std::size_t i = 0; i < params().size(); ++i) {
        const ParamRow& row = params()[i];
        void* value = param_table().set_default(module.given, i);
        mca_base_component_var_register(&mca_btl_coopib_component.btl_version, row.name, help_text(row).c_str(),
                                        is_given_as_text(row) ? MCA_BASE_VAR_TYPE_STRING : MCA_BASE_VAR_TYPE_INT64_T,
                                        nullptr, 0, static_cast<mca_base_var_flag_t>(0),
                                        static_cast<mca_base_var_info_lvl_t>(OPAL_INFO_LVL_1 + row.level - 1),
                                        MCA_BASE_VAR_SCOPE_READONLY, value);
    }
    register_performance_variables(mca_btl_coopib_component.btl_version);
    set_defaults(module.base);
    return mca_btl_base_param_register(&mca_btl_coopib_component.btl_version, &module.base);
}

extern "C" int mca_btl_coopib_open(void) {
    opal_show_help_add_dir(COOP_HELP_DIR);
    OBJ_CONSTRUCT(&module.lock, opal_mutex_t);
    return OPAL_SUCCESS;
}

extern "C" int mca_btl_coopib_close(void) {
    OBJ_DESTRUCT(&module.lock);
    return OPAL_SUCCESS;
}

// Whether `list`, the value of the parameter btl, contains the name of this component.
bool is_named(const char* list) {
    if (list == nullptr || *list == '^') return false;
    const std::string words = std::string(",") + list + ",";
    return words.find(",coopib,") != std::string::npos;
}

bool is_asked_for() {
    const int index = mca_base_var_find("opal", "btl", nullptr, nullptr);
    const char* const* value = nullptr;
    if (index < 0 || mca_base_var_get_value(index, &value, nullptr, nullptr) != OPAL_SUCCESS || value == nullptr)
        return false;
    return is_named(*value);
}

bool check_sizes(mca_btl_base_module_t& b) {
    if (b.btl_max_send_size < kLeastFragmentBytes || b.btl_max_send_size > kMostFragmentBytes) {
        parameter_out_of_range(
            {"max_send_size", std::to_string(b.btl_max_send_size),
             std::to_string(kLeastFragmentBytes) + ".." + std::to_string(kMostFragmentBytes) + " bytes"});
        return false;
    }
    if (b.btl_eager_limit > b.btl_max_send_size || b.btl_rndv_eager_limit > b.btl_max_send_size) {
        parameter_out_of_range({"eager_limit", std::to_string(b.btl_eager_limit),
                                "at most btl_coopib_max_send_size, " + std::to_string(b.btl_max_send_size) + " bytes"});
        return false;
    }
    return true;
}

// Joins the diagnostics about each subject into one line.
std::array<std::string, rail::kAbouts> by_subject(const std::vector<rail::Diagnostic>& said) {
    std::array<std::string, rail::kAbouts> lines;
    for (const rail::Diagnostic& each : said) {
        std::string& line = lines[static_cast<std::size_t>(each.about)];
        line.append(line.empty() ? "" : "; ").append(each.sentence);
    }
    return lines;
}

bool devices_serve(const Module& m, const std::vector<rail::Diagnostic>& said) {
    const auto lines = by_subject(said);
    const auto about = [&](rail::About what) -> const std::string& { return lines[static_cast<std::size_t>(what)]; };
    if (!about(rail::About::kInterfaces).empty()) return not_there(m, about(rail::About::kInterfaces)), false;
    if (!m.hcas.empty()) return true;
    if (const std::string& keys = about(rail::About::kPkey); !keys.empty()) {
        parameter_out_of_range({"pkey", path::pkey_text(static_cast<std::uint16_t>(m.given.pkey)),
                                "the P_Keys of a port here (" + keys + ")"});
        return false;
    }
    if (const std::string& indices = about(rail::About::kGidIndex); !indices.empty()) {
        parameter_out_of_range(
            {"gid_index", std::to_string(m.given.gid_index), "-1, or where a port here has a GID (" + indices + ")"});
        return false;
    }
    const std::string& notes = about(rail::About::kDevice);
    return no_device(notes.empty() ? "there is no HCA" : notes), false;
}

// Returns false, after a report, if the parameter fork demands protection that is not available.
bool prepare_for_forks(const Module& m) {
    if (m.given.fork == static_cast<std::int64_t>(Fork::kOff)) return true;
    const rail::Status safe = rail::make_forks_safe();
    if (safe) return true;
    if (m.given.fork == static_cast<std::int64_t>(Fork::kOn)) return cannot_start(safe.trouble().sentence), false;
    opal_warn_fork();  // warns when the application forks
    return true;
}

// Returns false, after a report, if there is no HCA or one that the parameters name is missing.
bool open_devices(Module& m) {
    rail::HcaOptions options;
    options.include = m.given.if_include ? m.given.if_include : "";
    options.exclude = m.given.if_exclude ? m.given.if_exclude : "";
    if (m.given.max_reads != 0) options.most_reads = static_cast<std::uint32_t>(m.given.max_reads);
    options.ports = wishes_for_ports(m.given);
    std::vector<rail::Diagnostic> said;
    m.hcas = rail::open_hcas(options, said);
    if (m.hcas.size() > kMaxHcas) keep_near_hcas(m);
    return devices_serve(m, said);
}

// Bytes that are registered before the first message: receive buffers, a first chunk
// of fragments, each on every HCA, and the connector's datagrams on every port.
std::uint64_t bytes_to_start(const Module& m) {
    std::uint64_t buffers = FragmentPool::kPerChunk;
    for (const rail::Hca& hca : m.hcas)
        if (hca.caps().has_srq())
            buffers += std::min(static_cast<std::uint32_t>(m.given.receives), hca.caps().max_srq_wr);
    constexpr std::uint64_t kDatagrams = 1 << 19;
    return m.hcas.size() * buffers * (m.buffer_bytes() + 64) + rail::ports_of(m.hcas).size() * kDatagrams;
}

// Reports the error `number`, an errno, and returns false.
bool refused(const Module& m, int number, const std::string& why) {
    number == ENOMEM ? memory_locked(m, bytes_to_start(m)) : cannot_start(why);
    return false;
}

bool open_queues(Module& m) {
    m.uses.resize(m.hcas.size());
    m.interrupts = std::make_unique<Interrupts>(m);
    for (std::uint32_t i = 0; i < m.hcas.size(); ++i) {
        rail::Hca& hca = m.hcas[i];
        ibv_comp_channel* const channel = m.interrupts->open_channel(hca.context());
        auto cq = rail::make_cq(hca.context(), kFirstCqEntries, channel);
        // Some drivers cannot resize a completion queue. There it is made large at once.
        if (cq && ibv_resize_cq(*cq, (*cq)->cqe) != 0)
            cq = rail::make_cq(hca.context(), static_cast<int>(std::min(hca.caps().max_cqe, kFixedCqEntries)), channel);
        if (!cq) return cannot_start(cq.trouble().sentence), false;
        m.uses[i].cq = std::move(*cq);
        if (!hca.caps().has_srq()) continue;
        auto srq = rail::make_srq(hca.pd(),
                                  std::min(static_cast<std::uint32_t>(m.given.receives), hca.caps().max_srq_wr), 1);
        if (!srq) return cannot_start(srq.trouble().sentence), false;
        m.uses[i].srq = std::move(*srq);
        if (!open_receives(m, i))
            return refused(m, errno, rail::trouble(hca.context(), errno, "cannot register receive buffers").sentence);
    }
    return true;
}

bool open_connections(Module& m) {
    m.connections = std::make_unique<Connections>(m);
    const auto done = m.connections->open();
    return done || refused(m, done.trouble().number, done.trouble().sentence);
}

// The largest message that every port accepts. A port that reports no limit is ignored.
std::size_t most_message_bytes(const Module& m) {
    std::size_t least = kMostOperationBytes;
    for (const rail::Hca& hca : m.hcas)
        if (hca.caps().max_message_bytes != 0) least = std::min<std::size_t>(least, hca.caps().max_message_bytes);
    return least;
}

// Limits operations to a size that every rail accepts, because an operation may use any rail as a whole. Parameters may
// have set larger limits. (ob1 cuts its puts by rdma_pipeline_frag_size.)
bool limit_operations(Module& m) {
    mca_btl_base_module_t& b = m.base;
    const std::size_t most = most_message_bytes(m);
    if (most < m.buffer_bytes()) {
        cannot_start("a port takes messages of " + std::to_string(most) +
                     " bytes at most: btl_coopib_max_send_size is too large for it");
        return false;
    }
    b.btl_get_limit = std::min(b.btl_get_limit, most);
    b.btl_put_limit = std::min(b.btl_put_limit, most);
    if (b.btl_rdma_pipeline_frag_size == 0 || b.btl_rdma_pipeline_frag_size > b.btl_put_limit)
        b.btl_rdma_pipeline_frag_size = b.btl_put_limit;
    return true;
}

// Whether the user has set a parameter of all transports for this one.
bool is_set(const char* name) {
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    const int index = mca_base_var_find("opal", "btl", "coopib", name);
    return index >= 0 && mca_base_var_get_value(index, nullptr, &source, nullptr) == OPAL_SUCCESS &&
           source != MCA_BASE_VAR_SOURCE_DEFAULT;
}

// A message that goes in one packet uses one rail. If its sender waits for it, stripes of a shorter one pay on slow ports.
// A sender that does not wait keeps the rails busy with other messages.
void limit_packets(Module& m, std::size_t ports, std::uint64_t slowest_mbytes_per_s) {
    m.awaited_packet_max = m.base.btl_eager_limit;
    m.limit_set = is_set("eager_limit");
    if (m.limit_set) return;
    const auto most = m.given.num_rails == 0 ? ports : std::min(ports, static_cast<std::size_t>(m.given.num_rails));
    m.awaited_packet_max = sched::packet_limit(m.base.btl_eager_limit, most, slowest_mbytes_per_s * 1'000'000);
    const std::size_t in_ring = sched::longest_in_ring(static_cast<std::uint32_t>(m.given.ring_bytes)) - sizeof(Header);
    if (in_ring > m.base.btl_eager_limit && m.given.ring_threshold > 0 && m.given.ring_peers > 0 &&
        m.given.failover == 0)
        m.long_packet_max = in_ring;
}

// The module has only the abilities that all HCAs have.
void set_abilities(Module& m) {
    std::uint32_t inline_bytes = UINT32_MAX;
    bool reads = true, atomics = true;
    std::uint64_t rate = 0, slowest = UINT64_MAX;
    std::size_t ports = 0;
    for (const rail::Hca& hca : m.hcas) {
        inline_bytes = std::min(inline_bytes, hca.caps().max_inline);
        reads &= hca.caps().max_rd_atomic > 0;
        atomics &= hca.caps().atomics && hca.caps().max_rd_atomic > 0;
        for (const path::PortRecord& port : hca.ports()) {
            rate += port.rate_mbytes_per_s;
            slowest = std::min<std::uint64_t>(slowest, port.rate_mbytes_per_s);
            ++ports;
        }
    }
    limit_packets(m, ports, slowest);
    mca_btl_base_module_t& b = m.base;
    if (!reads) b.btl_flags &= ~static_cast<std::uint32_t>(MCA_BTL_FLAGS_GET);
    // With fewer rails than ports, a peer may have no rail to the HCA that is named for atomic operations.
    if (m.given.num_rails != 0 && static_cast<std::size_t>(m.given.num_rails) < rail::ports_of(m.hcas).size())
        atomics = false;
    if (!atomics) b.btl_flags &= ~static_cast<std::uint32_t>(MCA_BTL_FLAGS_ATOMIC_FOPS);
    b.btl_put_local_registration_threshold = m.immediate_bytes = inline_bytes;
    b.btl_get_local_registration_threshold = 0;
    if (b.btl_bandwidth == 0) b.btl_bandwidth = static_cast<std::uint32_t>(rate * 8);
}

bool start(Module& m) {
    if (const auto wrong = check(m.given)) return parameter_out_of_range(*wrong), false;
    if (const auto wrong = make_sched_config(m.given, m.sched)) return parameter_out_of_range(*wrong), false;
    if (!check_sizes(m.base) || !prepare_for_forks(m) || !open_devices(m) || !limit_operations(m)) return false;
    m.id = id_of(OPAL_PROC_MY_NAME);
    std::vector<rail::Hca*> all;
    for (rail::Hca& hca : m.hcas) all.push_back(&hca);
    if (m.given.apm != static_cast<std::int64_t>(path::Apm::kOff)) m.migrations = std::make_unique<Migrations>();
    if (!m.fragments.open(m.buffer_bytes(), static_cast<std::size_t>(m.given.ring_bytes), all))
        return refused(m, errno, "cannot register buffers to send from");
    if (!open_queues(m) || !open_connections(m)) return false;
    if (!open_registration(m)) return cannot_start("Open MPI's registration cache (rcache/grdma) is missing"), false;
    m.own.limits = {
        .num_rails = static_cast<std::uint16_t>(m.given.num_rails == 0 ? sched::kMaxRails : m.given.num_rails),
        .qps_per_port = static_cast<std::uint8_t>(m.given.qps_per_port),
        .reads_apart = static_cast<std::uint8_t>(m.given.interleave),
        .max_paths = static_cast<std::uint16_t>(m.given.max_paths)};
    if (const auto wrong = order_ports(m)) return parameter_out_of_range(*wrong), false;
    want_alternates(m);
    set_abilities(m);
    for (std::size_t i = 0; i < m.hcas.size(); ++i) m.uses[i].guid = ibv_get_device_guid(m.hcas[i].context()->device);
    if (const auto why = m.connections->start_thread()) answers_by_polling(*why);
    publish_extension(m);
    return true;
}

extern "C" mca_btl_base_module_t** mca_btl_coopib_init(int* count, bool, bool) {
    *count = 0;
    module.asked_for = is_asked_for();
    if (!module.asked_for) return nullptr;
    if (!start(module)) {
        finalize(&module.base);
        return nullptr;
    }
    publish_ports(module);
    auto** modules = static_cast<mca_btl_base_module_t**>(std::malloc(sizeof(mca_btl_base_module_t*)));
    modules[0] = &module.base;
    *count = 1;
    return modules;
}

extern "C" int mca_btl_coopib_progress(void) { return progress(); }

}  // namespace
}  // namespace coop::ib

using namespace coop::ib;

mca_btl_base_component_t mca_btl_coopib_component = {
    .btl_version =
        {
            MCA_BTL_BASE_VERSION_3_1_0,
            .mca_component_name = "coopib",
            MCA_BASE_MAKE_VERSION(component, COOP_VERSION_MAJOR, COOP_VERSION_MINOR, COOP_VERSION_RELEASE),
            .mca_open_component = mca_btl_coopib_open,
            .mca_close_component = mca_btl_coopib_close,
            .mca_register_component_params = mca_btl_coopib_register,
        },
    .btl_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .btl_init = mca_btl_coopib_init,
    .btl_progress = mca_btl_coopib_progress,
};
