#ifndef DEVICES_PJRT_SUPERVISOR_INTERNAL_H
#define DEVICES_PJRT_SUPERVISOR_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "devices/pjrt/supervisor/output.h"
#include "devices/pjrt/supervisor/supervisor.h"

/* Shared by the files of this folder: supervisor.c (the child's life), child.c (the process),
 * calls.c, execute.c and objects.c (what it is asked to do). Nobody else includes this. */

/* One batch at a time runs in it. */
typedef struct pjrt_execution_slot {
    int memory_fd, request_fd, reply_fd;
    pjrt_slot_memory *memory; /* mapped */
} pjrt_execution_slot;

/* What is needed to send a weight or program again, to the next host. `fd` is -1 once it is
 * removed. */
typedef struct pjrt_replay_record {
    int fd, arguments_fd;
    size_t bytes;
    pjrt_tensor_shape shape;               /* weights */
    uint32_t argument_count, output_count; /* programs */
} pjrt_replay_record;

typedef struct pjrt_replay_list {
    pjrt_replay_record *items;
    uint32_t count, capacity;
} pjrt_replay_list;

/* A control message that waits for its reply; on the caller's stack. */
typedef struct pjrt_call {
    struct pjrt_call *next;
    uint64_t id;
    pjrt_message reply;
    int reply_fd;
    bool is_done, is_lost; /* lost: the host ended first */
} pjrt_call;

struct pjrt_supervisor {
    pjrt_supervisor_options options;
    char *host_program;
    pthread_t thread;
    bool has_no_thread;
    int stop_fd;

    pthread_mutex_t replay_lock; /* acquired before `lock`; guards the two lists */
    pjrt_replay_list weights, programs;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    device_state state;
    status start_failure; /* of the first start */
    char reason[256];
    bool is_marked_failed; /* this host was ended, `reason` says why; until the next one is healthy
                            */
    pjrt_host_facts facts;
    pid_t child;
    int pid_fd, socket;
    int output_fd; /* reading end of the child's standard output and error */
    uint64_t last_id;
    pjrt_call *calls;
    int executing; /* slots that use pid_fd now */

    pjrt_output output;         /* the supervising thread's */
    pjrt_execution_slot *slots; /* [device][slot]; set before the first HEALTHY, then constant */
    int slot_count;
    _Atomic uint64_t restarts;
};

/* calls.c: control messages. Any thread but the supervising one, unless stated. */

/* Sends `m`, waits for its reply and puts it there. STATUS_UNAVAILABLE: the host is gone. */
status pjrt_supervisor_call(pjrt_supervisor *s, pjrt_message *m, const int *fds, int fd_count,
                            int *reply_fd, uint64_t timeout_ns) MUST_CHECK;
/* Ends a host that has failed and stores why; the supervising thread notices and starts the next
 * one. The caller holds `lock`. Any thread. */
void pjrt_supervisor_mark_failed(pjrt_supervisor *s, const char *why);
/* The supervising thread: a reply has come; the host has ended. */
void pjrt_calls_complete(pjrt_supervisor *s, const pjrt_message *m, const int fds[3]);
void pjrt_calls_fail_all(pjrt_supervisor *s);
/* For pthread_cond_timedwait() on `changed`. */
struct timespec pjrt_time_after(uint64_t ns);

/* child.c: the child process. The supervising thread. */

status pjrt_child_spawn(pjrt_supervisor *s) MUST_CHECK;
/* Logs what the child has printed so far. */
void pjrt_child_read_output(pjrt_supervisor *s);
/* Closes its socket, and gives it a moment to end by itself. */
void pjrt_child_ask_to_end(pjrt_supervisor *s);
/* Kills the child if it still runs, waits until no slot uses its descriptor, and says how it ended.
 */
void pjrt_child_reap(pjrt_supervisor *s, char *how, size_t how_bytes);

/* objects.c: weights and programs. */

pjrt_message pjrt_load_message(uint32_t number, const pjrt_replay_record *program);
void pjrt_replay_record_dispose(pjrt_replay_record *r);

#endif
