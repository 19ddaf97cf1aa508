#include "loadtest/wire/receive_stamp.h"

#include "base/clock.h"

#include <string.h>

#define AGE_NS_MAX 10000000000u /* older: the wall clock was set in between */

void receive_stamp_enable(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &(int){1}, sizeof(int));
}

uint64_t receive_stamp_ns(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
            continue;
        struct timespec at;
        memcpy(&at, CMSG_DATA(c), sizeof at);
        /* The stamp is of the wall clock: its age is the same on ours. */
        uint64_t stamp_ns = (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
        uint64_t wall_ns = clock_wall_ns(), now_ns = clock_now_ns();
        uint64_t age_ns = wall_ns > stamp_ns ? wall_ns - stamp_ns : 0;
        return age_ns < AGE_NS_MAX && age_ns < now_ns ? now_ns - age_ns : now_ns;
    }
    return clock_now_ns();
}
