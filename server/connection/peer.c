#include "server/connection/peer.h"

/* linux/tcp.h has all of tcp_info, and cannot stand beside the C library's netinet/tcp.h. */
#include <linux/tcp.h>
#include <stddef.h>
#include <sys/socket.h>

#define PROTOCOL_TCP 6

uint64_t peer_acknowledged_bytes(int fd)
{
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    if (getsockopt(fd, PROTOCOL_TCP, TCP_INFO, &info, &bytes) != 0 ||
        bytes < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked)
        return 0;
    return info.tcpi_bytes_acked;
}
