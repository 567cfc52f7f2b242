// SPDX-License-Identifier: BSD-3-Clause
//
// The groups with outstanding non-blocking calls, and the progress function that continues them. It is registered with
// Open MPI only while there are any.
//
// Threading: any. One thread at a time continues the calls; another one that polls meanwhile skips them.
#pragma once

#include "job.h"

namespace coop::ag {

class Group;

// Continues the calls of the group from now on, whenever the application polls.
void poll_for(Group& group) noexcept;
// Waits until no thread uses the group.
void stop_polling_for(Group& group) noexcept;
// The application's next poll calls on_done again. For the handler, which must not complete every request.
void finish_when_polling(Job& job) noexcept;
// Before the component is unloaded.
void stop_polling() noexcept;

}  // namespace coop::ag
