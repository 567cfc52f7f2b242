// SPDX-License-Identifier: BSD-3-Clause
//
// Stand-in for a header that Open MPI's --with-devel-headers does not install, although ompi/op/op.h includes it. It is
// last in the include order, so the real one is used where there is one. It is good only for an Open MPI whose Fortran
// integers have the size of an int, the default: then the conversions do nothing.
#pragma once

#if OMPI_SIZEOF_FORTRAN_INTEGER != SIZEOF_INT
#error "Fortran integers of this Open MPI are no int: its fint_2_int.h is needed (configure --with-ompi-source=DIR)"
#endif

#define OMPI_INT_2_FINT(value) (value)
#define OMPI_FINT_2_INT(value) (value)
