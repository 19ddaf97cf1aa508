#ifndef KERNELS_KERNELS_LIST_H
#define KERNELS_KERNELS_LIST_H

#include "kernels/kernels.h"

/* Declares the function of every kernel in kernels.inc with the type of its table entry. For
 * dispatch.c, the kernels themselves and tests/kernels; all others use the table. */
#define KERNEL(entry, function, level, features) extern __typeof__(*((kernels *)0)->entry) function;
#include "kernels/kernels.inc"
#undef KERNEL

#endif
