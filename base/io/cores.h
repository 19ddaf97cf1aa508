#ifndef BASE_IO_CORES_H
#define BASE_IO_CORES_H

/* How many cores this process may keep busy: the least of those it may run on (its affinity) and
 * of the quotas of its control groups, version 1 or 2, rounded up; at least 1. The quotas are read
 * once, by the first call. Any thread. */
int cores_there_are(void);

/* The quota of control groups with files at `root` ("/sys/fs/cgroup") of the process's groups in
 * `groups` ("/proc/self/cgroup"), in cores; 0: they set none. For tests. */
double cores_of_groups(const char *root, const char *groups);

#endif
