#ifndef DEVICES_PJRT_PROTOCOL_PROTOCOL_H
#define DEVICES_PJRT_PROTOCOL_PROTOCOL_H

#include <stdatomic.h>

#include "base/status.h"
#include "base/tensor.h"
#include "devices/pjrt/protocol/hlo_summary.h"

/* What the server and its device host (a child process that runs a PJRT plugin) send to each other.
 *
 * Control: one message per packet on a SOCK_SEQPACKET socket; large data travels as file
 * descriptors beside it. A reply has the id of its request. The host works on each message on a
 * thread of its own, so replies come in any order.
 *
 * Batches: each execution slot has shared memory (a memfd that both processes map) and two
 * eventfds. The server writes the tensors and the header, then the request eventfd; the host writes
 * outputs and result in place, then the reply eventfd. `sequence` distinguishes the current request
 * from one that the server has given up.
 *
 * Both processes run the same binary, so structs are sent as they are. The host is not hostile but
 * may be broken: the server uses no number in shared memory that it did not write itself, but
 * for statistics. */

#define PJRT_HOST_CONTROL_FD 3 /* where the host finds its end of the socket */
#define PJRT_SLOT_TENSORS_MAX 128
#define PJRT_SLOTS_MAX 4 /* of a device; as many batches are in flight as pipeline.h finds */
#define PJRT_SLOTS_MIN 2 /* ... at least: transfer overlaps execution */
#define PJRT_TEXT_BYTES_MAX 512

typedef enum pjrt_message_kind {
    PJRT_HELLO,   /* host -> server, at start: devices are open (or `result` says why not) */
    PJRT_SLOT,    /* server -> host: device, slot; fds: memfd, request eventfd, reply eventfd. No
                     reply */
    PJRT_WEIGHT,  /* upload a tensor to every device; fd: memfd with its data */
    PJRT_COMPILE, /* fds: memfd with StableHLO, and for exported programs a memfd with the
                     pjrt_declared of arguments, then outputs; the reply's fd: memfd with
                     the serialised program, and `hlo` tells of it */
    PJRT_LOAD,    /* fds: memfd with the serialised program, memfd with its argument table */
    PJRT_RELEASE, /* a program */
    PJRT_RELEASE_WEIGHT,
    PJRT_PROFILE,      /* records for `elapsed_ns`; the reply comes when it has begun */
    PJRT_PROFILE_TAKE, /* the reply comes when it has ended; its fd: memfd with an XSpace */
} pjrt_message_kind;

typedef struct pjrt_tensor_shape {
    int32_t dtype, rank;
    int64_t dims[TENSOR_RANK_MAX];
} pjrt_tensor_shape;

typedef struct pjrt_message {
    int32_t kind;   /* pjrt_message_kind */
    int32_t result; /* status, in replies */
    uint64_t id;
    uint32_t object; /* number of a program or weight, chosen by the server, never used again */
    int32_t device, slot;
    uint64_t bytes;          /* of the (first) memfd */
    uint64_t elapsed_ns;     /* replies: how long the host worked on it; PJRT_PROFILE: how long */
    uint32_t argument_count; /* PJRT_LOAD, PJRT_COMPILE */
    uint32_t output_count;   /* PJRT_LOAD, PJRT_COMPILE */
    pjrt_tensor_shape shape; /* PJRT_WEIGHT */
    int32_t device_count;    /* PJRT_HELLO */
    char device_kind[64], platform[64], version[256]; /* PJRT_HELLO */
    char fingerprint[64];                             /* PJRT_HELLO: of usable programs, or "" */
    int64_t memory_bytes;                             /* PJRT_HELLO: of each device; 0: not known */
    int64_t code_bytes, output_bytes, temporary_bytes, peak_bytes; /* PJRT_COMPILE, in replies */
    hlo_summary hlo;                                               /* PJRT_COMPILE, in replies */
    char text[PJRT_TEXT_BYTES_MAX];                                /* why it failed */
} pjrt_message;

/* What model.json declares of an argument or output of an exported program: the host compares it
 * with the compiled program. */
typedef struct pjrt_declared {
    pjrt_tensor_shape shape;
    char what[112]; /* "input \"ids\"" */
} pjrt_declared;

/* One program argument in the table of PJRT_LOAD: input `index` of the batch, or a weight. */
typedef struct pjrt_argument {
    bool is_weight;
    uint32_t index;
} pjrt_argument;

typedef struct pjrt_slot_tensor {
    pjrt_tensor_shape shape;
    uint64_t offset, bytes; /* in the slot's memory */
} pjrt_slot_tensor;

/* Of a batch, all by clock_now_ns(). */
typedef struct pjrt_times {
    uint64_t submitted_ns;  /* the server gave it to the host */
    uint64_t uploaded_ns;   /* its inputs were on the device */
    uint64_t executed_ns;   /* its results were on the device */
    uint64_t downloaded_ns; /* its results were in the slot's memory */
} pjrt_times;

/* The shared memory of an execution slot: this header, then tensors. */
typedef struct pjrt_slot_memory {
    _Atomic uint64_t sequence;  /* of the current request */
    _Atomic uint64_t completed; /* sequence of the last request that the host has completed */
    uint32_t program;
    uint32_t input_count, output_count;
    int32_t result;
    pjrt_times times; /* from `uploaded_ns` on; for statistics, once they are checked */
    uint64_t pinned_bytes;
    char text[PJRT_TEXT_BYTES_MAX];
    pjrt_slot_tensor inputs[PJRT_SLOT_TENSORS_MAX], outputs[PJRT_SLOT_TENSORS_MAX];
} pjrt_slot_memory;

/* Tensors start at this offset of the shared memory. */
#define PJRT_SLOT_ALIGNMENT 4096
#define PJRT_SLOT_DATA_OFFSET                                                                      \
    ((sizeof(pjrt_slot_memory) + PJRT_SLOT_ALIGNMENT - 1) & ~(size_t)(PJRT_SLOT_ALIGNMENT - 1))

/* Blocking, whole packets. At most 3 descriptors; the receiver closes those it gets, which
 * are close-on-exec; unused entries are -1. STATUS_UNAVAILABLE: the other process is gone. */
status pjrt_send(int socket, const pjrt_message *m, const int *fds, int fd_count) MUST_CHECK;
status pjrt_receive(int socket, pjrt_message *m, int fds[3]) MUST_CHECK;

pjrt_tensor_shape pjrt_tensor_shape_of(const tensor *t);
/* A tensor of that shape with its elements at `data`. */
void pjrt_tensor_from_shape(const pjrt_tensor_shape *shape, void *data, tensor *out);

/* An unnamed file in memory of `bytes` bytes, zeroed. */
status pjrt_memory_create(const char *name, size_t bytes, int *fd) MUST_CHECK;
/* The same with that content. */
status pjrt_memory_create_from(const char *name, const void *data, size_t bytes,
                               int *fd) MUST_CHECK;
status pjrt_memory_map(int fd, size_t bytes, bool is_writable, void **out) MUST_CHECK;
void pjrt_memory_unmap(void *data, size_t bytes);

#endif
