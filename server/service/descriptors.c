#include "server/service/descriptors.h"

#include <dirent.h>
#include <stddef.h>
#include <sys/resource.h>

#include "base/log.h"

/* For models' files, plugins, logs, and connections that are closed while others take their
 * places. */
#define KEPT 32
#define KEPT_PART 16 /* and so many of each connection */

static rlim_t open_now(void)
{
    rlim_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return KEPT;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

int descriptors_for_connections(int connections_max)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return connections_max;
    rlim_t most = (rlim_t)connections_max, others = open_now() + KEPT;
    rlim_t needed = others + most + most / KEPT_PART;
    if (limit.rlim_cur < needed) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            limit.rlim_cur = before;
        log_debug("server", "descriptors: up to %llu, %llu before",
                  (unsigned long long)limit.rlim_cur, (unsigned long long)before);
    }
    if (limit.rlim_cur >= needed)
        return connections_max;
    rlim_t left = limit.rlim_cur > others ? limit.rlim_cur - others : 1;
    left -= left / KEPT_PART;
    log_warning("server",
                "%llu descriptors may be open (ulimit -n): that is enough for %llu connections, "
                "not for limits.connections_max %d",
                (unsigned long long)limit.rlim_cur, (unsigned long long)left, connections_max);
    return (int)left;
}
