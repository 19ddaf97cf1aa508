#ifndef DEVICES_CPU_DYNAMIC_ISLANDS_H
#define DEVICES_CPU_DYNAMIC_ISLANDS_H

#include "graph/graph.h"

/* Which nodes of a partly specialised graph run together. */

/* By node: the number of its island, from 0, or -1: it runs alone. A node is in an island if its
 * shapes are known and the CPU has its operator. All nodes of an island are needed as soon as one
 * is: none lies behind a branch that the others do not lie behind. And none of its inputs depends
 * on its outputs. STATUS_OUT_OF_MEMORY. */
status dynamic_find_islands(const graph *g, int32_t *island_of, int32_t *count) MUST_CHECK;

#endif
