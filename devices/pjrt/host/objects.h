#ifndef DEVICES_PJRT_HOST_OBJECTS_H
#define DEVICES_PJRT_HOST_OBJECTS_H

#include <pthread.h>

#include "devices/pjrt/plugin/session.h"
#include "devices/pjrt/protocol/protocol.h"

/* Weights and programs that the server has sent, by the numbers that it gave them. Any thread. An
 * object does not change until it is released, and the server releases a program only when no batch
 * uses it. */

#define HOST_DEVICES_MAX 64

typedef struct host_program {
    pjrt_loaded_executable *executable;
    pjrt_argument *arguments;
    int argument_count, output_count;
} host_program;

typedef struct host_table {
    void **items; /* by object number */
    uint32_t capacity;
} host_table;

typedef struct host_objects {
    const pjrt_session *session; /* of at most HOST_DEVICES_MAX devices */
    pthread_mutex_t lock;        /* guards the tables */
    host_table weights, programs;
} host_objects;

/* PJRT_WEIGHT, PJRT_LOAD: from the message's descriptors, which the caller closes. */
status host_objects_load_weight(host_objects *o, const pjrt_message *m,
                                const int fds[3]) MUST_CHECK;
status host_objects_load_program(host_objects *o, const pjrt_message *m,
                                 const int fds[3]) MUST_CHECK;
/* Numbers that do not exist are ignored. */
void host_objects_release_weight(host_objects *o, uint32_t number);
void host_objects_release_program(host_objects *o, uint32_t number);

/* NULL: no such program. Valid until it is released. */
host_program *host_objects_program(host_objects *o, uint32_t number);
/* The weight on that device; it must exist. */
pjrt_buffer *host_objects_weight(host_objects *o, uint32_t number, int device);

#endif
