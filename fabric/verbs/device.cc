// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/device.h"

#include <endian.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "fabric/engine/client.h"

namespace coop::fabric {
namespace {

VerbsDevice* make_device(const Hca& hca, std::uint32_t index, std::uint32_t number) {
    auto* device = new VerbsDevice{};
    device->node_type = IBV_NODE_CA;
    device->transport_type = IBV_TRANSPORT_IB;
    std::snprintf(device->name, sizeof device->name, "%.15s", hca.name);
    std::snprintf(device->dev_name, sizeof device->dev_name, "uverbs%u", number);
    std::snprintf(device->dev_path, sizeof device->dev_path, "/sys/class/infiniband_verbs/uverbs%u", number);
    std::snprintf(device->ibdev_path, sizeof device->ibdev_path, "/sys/class/infiniband/%.15s", hca.name);
    device->hca = index;
    device->number = number;
    return device;
}

std::vector<VerbsDevice*> make_devices(const Client& client) {
    const Host& host = client.subnet().hosts()[client.host()];
    std::vector<VerbsDevice*> devices;
    for (std::uint32_t i = 0; i < host.hcas; ++i)
        devices.push_back(make_device(client.subnet().hcas()[host.first_hca + i], host.first_hca + i, i));
    return devices;
}

}  // namespace

const std::vector<VerbsDevice*>& local_devices() {
    static std::mutex& lock = *new std::mutex;
    static std::vector<VerbsDevice*>& devices = *new std::vector<VerbsDevice*>;
    std::lock_guard guard(lock);
    if (devices.empty())
        if (const Client* client = Client::get()) devices = make_devices(*client);
    return devices;
}

}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB ibv_device** ibv_get_device_list(int* number) {
    const auto& devices = local_devices();
    auto* list = static_cast<ibv_device**>(std::calloc(devices.size() + 1, sizeof(ibv_device*)));
    if (list == nullptr) return refuse<ibv_device*>(ENOMEM);
    for (std::size_t i = 0; i < devices.size(); ++i) list[i] = devices[i];
    if (number != nullptr) *number = static_cast<int>(devices.size());
    return list;
}

COOP_VERB void ibv_free_device_list(ibv_device** list) { std::free(list); }

COOP_VERB const char* ibv_get_device_name(ibv_device* device) { return device->name; }

COOP_VERB int ibv_get_device_index(ibv_device* device) { return static_cast<int>(to_device(device).number) + 1; }

COOP_VERB __be64 ibv_get_device_guid(ibv_device* device) {
    const Client* client = Client::get();
    return client == nullptr ? 0 : htobe64(client->subnet().hcas()[to_device(device).hca].guid);
}
