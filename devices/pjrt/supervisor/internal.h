#ifndef DEVICES_PJRT_SUPERVISOR_INTERNAL_H
#define DEVICES_PJRT_SUPERVISOR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "devices/pjrt/supervisor/output.h"
#include "devices/pjrt/supervisor/supervisor.h"

/* Shared by pjrt_supervisor.c (the child's life), pjrt_child.c (the process) and pjrt_slot.c (what
 * it is asked to do); nobody else includes this. */

typedef struct pjrt_lane {
    int slot_fd, request_fd, reply_fd;
    pjrt_slot *slot;
} pjrt_lane;

/* What it takes to give a weight or program to the next host. `fd` is -1 once removed. */
typedef struct pjrt_keepsake {
    int fd, table_fd;
    size_t bytes;
    pjrt_tensor_shape shape;               /* weights */
    uint32_t argument_count, output_count; /* programs */
} pjrt_keepsake;

typedef struct pjrt_keep {
    pjrt_keepsake *items;
    uint32_t count, capacity;
} pjrt_keep;

typedef struct pjrt_call { /* a control message waiting for its reply; lives on the caller's stack
                            */
    struct pjrt_call *next;
    uint64_t id;
    pjrt_message reply;
    int reply_fd;
    bool is_done, was_lost;
} pjrt_call;

struct pjrt_supervisor {
    pjrt_supervisor_options options;
    char *host_program;
    pthread_t thread;
    bool is_threadless;
    int stop_fd;

    pthread_mutex_t keep_lock; /* taken before `lock`; guards the keeps */
    pjrt_keep weights, programs;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    device_state state;
    status start_failure; /* of the first start */
    char reason[256];
    bool is_condemned; /* somebody ended this host and wrote why; until the next one is healthy */
    pjrt_host_facts facts;
    pid_t child;
    int pid_fd, socket;
    int output_fd; /* reading end of the child's standard output and error */
    uint64_t last_id;
    pjrt_call *calls;
    int executing; /* lanes that use pid_fd now */

    pjrt_output output; /* the supervising thread's */
    pjrt_lane *lanes;   /* [device][lane]; set before the first HEALTHY, then constant */
    int lane_count;
    _Atomic uint64_t restarts;
};

/* Sends `m`, waits for its reply and puts it there. STATUS_UNAVAILABLE: the host is gone. */
status pjrt_supervisor_call(pjrt_supervisor *s, pjrt_message *m, const int *fds, int fd_count,
                            int *reply_fd, uint64_t timeout_ns) MUST_CHECK;
/* Ends a host that cannot be trusted any more, and says why; the supervisor notices and starts the
 * next. The caller holds `lock`. */
void pjrt_supervisor_condemn(pjrt_supervisor *s, const char *why);

/* The child process: supervising thread only. */
status pjrt_child_spawn(pjrt_supervisor *s) MUST_CHECK;
/* Takes what the child has printed. */
void pjrt_child_read_output(pjrt_supervisor *s);
/* Ends the child if it still runs, waits until no lane looks at it, and says how it ended. */
void pjrt_child_reap(pjrt_supervisor *s, char *how, size_t how_bytes);

pjrt_message pjrt_load_message(uint32_t number, const pjrt_keepsake *program);
void pjrt_keepsake_dispose(pjrt_keepsake *k);

#endif
