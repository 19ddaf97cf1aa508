#ifndef SERVER_BUDGET_MEMORY_H
#define SERVER_BUDGET_MEMORY_H

#include <stddef.h>

/* Bytes of memory that this process may use: the least of what the machine has, what its control
 * groups allow, and what is left of its address space (RLIMIT_AS). What the groups allow is read
 * once, by the first call. Any thread. */
size_t memory_there_is(void);

/* The same with the files of control groups at `root` ("/sys/fs/cgroup") and the process's groups
 * in `groups` ("/proc/self/cgroup"): for tests. SIZE_MAX: they set no limit. */
size_t memory_of_groups(const char *root, const char *groups);

#endif
