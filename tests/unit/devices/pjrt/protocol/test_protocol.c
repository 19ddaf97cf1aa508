#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "devices/pjrt/protocol/protocol.h"

Test(pjrt_protocol, descriptors_travel_and_short_packets_are_refused, .timeout = 300)
{
    int pair[2], fds[3], pipe_fds[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    cr_assert_eq(pipe(pipe_fds), 0);
    pjrt_message m = {.kind = PJRT_LOAD, .id = 7}, got;
    cr_assert_eq(pjrt_send(pair[0], &m, pipe_fds, 2), STATUS_OK);
    cr_assert_eq(pjrt_receive(pair[1], &got, fds), STATUS_OK);
    cr_assert_eq(got.id, 7);
    cr_assert(fds[0] >= 0 && fds[1] >= 0 && fds[2] == -1);
    close(fds[0]);
    close(fds[1]);
    cr_assert_eq(send(pair[0], &m, 10, 0), 10);
    cr_assert_eq(pjrt_receive(pair[1], &got, fds), STATUS_UNAVAILABLE);
    static char large[2 * sizeof m];
    cr_assert_eq(send(pair[0], large, sizeof large, 0), (ssize_t)sizeof large);
    cr_assert_eq(pjrt_receive(pair[1], &got, fds), STATUS_UNAVAILABLE);
    close(pair[0]);
    cr_assert_eq(pjrt_receive(pair[1], &got, fds), STATUS_UNAVAILABLE);
    cr_assert_eq(pjrt_send(pair[1], &m, NULL, 0), STATUS_UNAVAILABLE);
    close(pair[1]);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}
