#ifndef DEVICES_PJRT_PROTOCOL_PROTOCOL_H
#define DEVICES_PJRT_PROTOCOL_PROTOCOL_H

#include <stdatomic.h>

#include "base/status.h"
#include "base/tensor.h"

/* What the server and its device host (a child process that holds a PJRT plugin) say to each other.
 *
 * Control: one message per packet on a SOCK_SEQPACKET socket, with file descriptors beside it where
 * bytes are large. Each request has an id, its reply the same id. Slow work (compile, load) runs on
 * a thread of its own in the host, so replies come in any order.
 *
 * Batches: one slot per lane, a memfd both sides map. The server writes tensors and the header,
 * then the request eventfd; the host answers in place, then the reply eventfd. `sequence` tells a
 * late answer to an abandoned request from the current one.
 *
 * Both processes run the same binary, so structs cross as they are. The host is not hostile but may
 * be broken: the server trusts no number in a slot that it did not write itself. */

#define PJRT_HOST_CONTROL_FD 3 /* where the host finds its end of the socket */
#define PJRT_SLOT_TENSORS_MAX 128
#define PJRT_TEXT_BYTES_MAX 512

typedef enum pjrt_message_kind {
    PJRT_HELLO, /* host -> server, unasked: devices are open (or `result` says why not) */
    PJRT_LANE,  /* server -> host: device, lane; fds: slot memfd, request eventfd, reply eventfd. No
                   reply */
    PJRT_WEIGHT,  /* upload a tensor to every device; fd: memfd with its data */
    PJRT_COMPILE, /* fds: memfd with StableHLO, and where something is declared of it a memfd with
                     the pjrt_declared of its arguments, then outputs; the reply's fd: memfd with
                     the serialised program */
    PJRT_LOAD,    /* fds: memfd with the serialised program, memfd with its argument table */
    PJRT_RELEASE, /* a program */
    PJRT_RELEASE_WEIGHT,
} pjrt_message_kind;

typedef struct pjrt_tensor_shape {
    int32_t dtype, rank;
    int64_t dims[TENSOR_RANK_MAX];
} pjrt_tensor_shape;

typedef struct pjrt_message {
    int32_t kind;   /* pjrt_message_kind */
    int32_t result; /* status, in replies */
    uint64_t id;
    uint32_t object; /* program or weight number, chosen by the server, never reused */
    int32_t device, lane;
    uint64_t bytes;                                   /* of the (first) memfd */
    uint64_t elapsed_ns;                              /* replies: what the host spent on it */
    uint32_t argument_count;                          /* PJRT_LOAD, PJRT_COMPILE */
    uint32_t output_count;                            /* PJRT_LOAD, PJRT_COMPILE */
    pjrt_tensor_shape shape;                          /* PJRT_WEIGHT */
    int32_t device_count;                             /* PJRT_HELLO */
    char device_kind[64], platform[64], version[256]; /* PJRT_HELLO */
    char text[PJRT_TEXT_BYTES_MAX];                   /* why it failed */
} pjrt_message;

/* What a model declares of an argument or output of a program that was given to it: the host
 * compares it with the compiled program. */
typedef struct pjrt_declared {
    pjrt_tensor_shape shape;
    char what[112]; /* "input \"ids\"" */
} pjrt_declared;

/* One program argument in the table of PJRT_LOAD: tensor `index` of the slot, or a weight. */
typedef struct pjrt_argument {
    bool is_weight;
    uint32_t index;
} pjrt_argument;

typedef struct pjrt_slot_tensor {
    pjrt_tensor_shape shape;
    uint64_t offset, bytes; /* in the slot's memfd */
} pjrt_slot_tensor;

typedef struct pjrt_slot {
    _Atomic uint64_t sequence; /* of the current request */
    _Atomic uint64_t answered; /* of the last answer */
    uint32_t program;
    uint32_t input_count, output_count;
    int32_t result;
    uint64_t upload_ns, execute_ns, download_ns;
    char text[PJRT_TEXT_BYTES_MAX];
    pjrt_slot_tensor inputs[PJRT_SLOT_TENSORS_MAX], outputs[PJRT_SLOT_TENSORS_MAX];
} pjrt_slot;

/* Tensors start at this offset of a slot and are aligned to it. */
#define PJRT_SLOT_ALIGNMENT 4096
#define PJRT_SLOT_DATA_OFFSET                                                                      \
    ((sizeof(pjrt_slot) + PJRT_SLOT_ALIGNMENT - 1) & ~(size_t)(PJRT_SLOT_ALIGNMENT - 1))

/* Blocking, whole packets. At most 3 descriptors; received ones are close-on-exec and the
 * receiver's to close; unused entries are -1. STATUS_UNAVAILABLE: the other side is gone. */
status pjrt_send(int socket, const pjrt_message *m, const int *fds, int fd_count) MUST_CHECK;
status pjrt_receive(int socket, pjrt_message *m, int fds[3]) MUST_CHECK;

/* An unnamed file in memory of `bytes` bytes, zeroed. */
status pjrt_memory_create(const char *name, size_t bytes, int *fd) MUST_CHECK;
/* The same with that content. */
status pjrt_memory_create_from(const char *name, const void *data, size_t bytes,
                               int *fd) MUST_CHECK;
status pjrt_memory_map(int fd, size_t bytes, bool is_writable, void **out) MUST_CHECK;
void pjrt_memory_unmap(void *data, size_t bytes);

#endif
