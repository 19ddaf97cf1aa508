#ifndef LOADTEST_WIRE_RECEIVE_STAMP_H
#define LOADTEST_WIRE_RECEIVE_STAMP_H

#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

/* When bytes reached this machine, by the kernel (SO_TIMESTAMPNS, socket(7)): a process that was
 * asleep or without a core reads them later, 50 us and more, and that is not the peer's time. */
#define RECEIVE_STAMP_CONTROL_BYTES CMSG_SPACE(sizeof(struct timespec))

/* Any thread; without support in the kernel nothing happens. */
void receive_stamp_enable(int fd);
/* `m` as recvmsg filled it, with msg_control of RECEIVE_STAMP_CONTROL_BYTES, just now. The arrival
 * of its last byte by base/clock.h; the present time where the kernel gives none. Never later than
 * now. */
uint64_t receive_stamp_ns(struct msghdr *m);

#endif
