// SPDX-License-Identifier: BSD-3-Clause
//
// Stand-in for a header that Open MPI's --with-devel-headers forgets to install, although pml_base_sendreq.h reaches
// it. Last in the include order: the real one wins where there is one (a fuller package, or --with-ompi-source). Good
// only for an Open MPI built without PERUSE tracing, the default: then one type name is all that is used.
#pragma once

#if !defined(OMPI_WANT_PERUSE) || OMPI_WANT_PERUSE
#error "this Open MPI is built with PERUSE: its ompi/peruse/peruse.h is needed (configure --with-ompi-source=DIR)"
#endif

typedef void* peruse_event_h;
