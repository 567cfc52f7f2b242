// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/virtual_hosts.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "fabric/tool/environment.h"

namespace coop::fabric {
namespace {

// Tries `what` in a child process, so that it has no effect on this one.
bool succeeds_apart(const std::function<bool()>& what) {
    const pid_t child = fork();
    if (child == 0) _exit(what() ? 0 : 1);
    int status = 1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && status == 0;
}

bool can_name_hosts() { return unshare(CLONE_NEWUTS) == 0; }

bool write_text(const char* path, const std::string& text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(fd);
    return written;
}

// Keeps CAP_SYS_ADMIN of the namespace across exec: as an ambient capability, which has to be inheritable.
bool keep_capability() {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    if (syscall(SYS_capget, &header, data) != 0) return false;
    data[0].inheritable |= 1u << CAP_SYS_ADMIN;
    return syscall(SYS_capset, &header, data) == 0 &&
           prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) == 0;
}

// Enters a new user namespace that maps this user to itself.
bool enter_user_namespace() {
    const std::string user = std::to_string(geteuid()), group = std::to_string(getegid());
    return unshare(CLONE_NEWUSER) == 0 && write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/uid_map", user + " " + user + " 1") &&
           write_text("/proc/self/gid_map", group + " " + group + " 1") && keep_capability();
}

// Sets a parameter of mpirun unless the user has set it.
void set_default(const char* name, const std::string& value) { setenv(name, value.c_str(), 0); }

}  // namespace

std::string virtual_host_refusal() {
    if (succeeds_apart(can_name_hosts)) return {};
    if (succeeds_apart([] { return enter_user_namespace() && can_name_hosts(); })) return {};
    return "this system permits neither UTS namespaces (CAP_SYS_ADMIN: root, or docker run --cap-add SYS_ADMIN) nor "
           "user "
           "namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)";
}

VirtualHosts::~VirtualHosts() {
    std::error_code nothing_to_do;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, nothing_to_do);
}

Error VirtualHosts::prepare(const Segment& subnet, unsigned slots) {
    if (const std::string refusal = virtual_host_refusal(); !refusal.empty()) return {"--virtual-hosts: " + refusal};
    needs_user_namespace_ = !succeeds_apart(can_name_hosts);
    const char* temporary = std::getenv("TMPDIR");
    std::string pattern = std::string(temporary != nullptr && *temporary != '\0' ? temporary : "/tmp") +
                          "/coop-fabric.XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) return {"cannot make a folder " + pattern + ": " + std::strerror(errno)};
    folder_ = pattern;
    host_file_ = folder_ + "/hosts";
    FILE* file = std::fopen(host_file_.c_str(), "we");
    if (file == nullptr) return {"cannot write " + host_file_ + ": " + std::strerror(errno)};
    for (const Host& host : subnet.hosts()) std::fprintf(file, "%s slots=%u\n", host.name, slots);
    if (std::fclose(file) != 0) return {"cannot write " + host_file_ + ": " + std::strerror(errno)};
    return {};
}

Error VirtualHosts::enter() const {
    if (needs_user_namespace_ && !enter_user_namespace())
        return {std::string("--virtual-hosts: cannot enter a user namespace: ") + std::strerror(errno)};
    const std::string own = own_path();
    if (own.find_first_of(" :") != std::string::npos)
        return {"--virtual-hosts: '" + own +
                "' has a blank or a colon in its name, which plm_rsh_agent does not allow"};
    setenv("OMPI_MCA_plm_rsh_agent", (own + " agent").c_str(), 1);
    setenv("PRTE_MCA_plm_ssh_agent", (own + " agent").c_str(), 1);
    set_default("OMPI_MCA_orte_default_hostfile", host_file_);
    set_default("PRTE_MCA_prte_default_hostfile", host_file_);
    // Daemons keep files in a folder that is named after the host, and the last one to end removes it. In /tmp, it would be the
    // folder of every other run with a host of this name: a daemon then fails if another one ends while it starts.
    set_default("OMPI_MCA_orte_tmpdir_base", folder_);
    set_default("PRTE_MCA_prte_tmpdir_base", folder_);
    // By default every daemon binds its first rank to the machine's first core.
    set_default("OMPI_MCA_hwloc_base_binding_policy", "none");
    set_default("PRTE_MCA_hwloc_default_binding_policy", "none");
    return {};
}

Error run_as_host(const std::string& host, const Words& command) {
    if (unshare(CLONE_NEWUTS) != 0)
        return {"cannot make a UTS namespace for host '" + host + "': " + virtual_host_refusal()};
    if (sethostname(host.c_str(), host.size()) != 0)
        return {"cannot set the host name '" + host + "': " + std::strerror(errno)};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    setenv("COOP_FABRIC_HOST", host.c_str(), 1);
    std::string line;
    for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    return {std::string("cannot run /bin/sh: ") + std::strerror(errno)};
}

}  // namespace coop::fabric
