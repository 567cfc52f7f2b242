// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/protection_domain.h"

using namespace coop::fabric;

COOP_VERB ibv_pd* ibv_alloc_pd(ibv_context* context) {
    VerbsContext& owner = to_context(context);
    auto* pd = new VerbsPd(owner);
    pd->number = owner.subnet().header().next_pd.fetch_add(1) + 1;
    pd->context = context;
    pd->handle = pd->number;
    return pd;
}

COOP_VERB int ibv_dealloc_pd(ibv_pd* pd) {
    if (to_pd(pd).users.load() != 0) return EBUSY;
    delete &to_pd(pd);
    return 0;
}
