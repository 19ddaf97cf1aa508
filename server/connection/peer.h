#ifndef SERVER_CONNECTION_PEER_H
#define SERVER_CONNECTION_PEER_H

#include <stdint.h>

/* Bytes that the peer of a TCP socket has acknowledged so far: whatever lies in buffers between, it
 * has taken these. 0: the kernel does not say. */
uint64_t peer_acknowledged_bytes(int fd);

#endif
