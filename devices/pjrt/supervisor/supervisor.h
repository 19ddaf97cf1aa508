#ifndef DEVICES_PJRT_SUPERVISOR_SUPERVISOR_H
#define DEVICES_PJRT_SUPERVISOR_SUPERVISOR_H

#include "devices/device.h"
#include "devices/pjrt/protocol/protocol.h"
#include "devices/pjrt/protocol/signature.h"

/* The server's side of one device host: starts the child process, restarts it with back-off when it
 * exits, crashes or hangs, gives it back its weights and programs, and runs batches in it. A plugin
 * cannot take the server down.
 *
 * One thread supervises. Calls come from any thread; execute() from the lane's own. No lock is held
 * while the host works. */

typedef struct pjrt_supervisor pjrt_supervisor;

typedef struct pjrt_supervisor_options {
    const char *host_program; /* the penstock binary; NULL: this process's own */
    const char *plugin;       /* path of the plugin */
    int lanes_per_device;     /* 0: 2, so that transfer overlaps execution */
    size_t slot_bytes; /* tensors of one batch; 0: 256 MiB (only touched pages cost memory) */
    uint64_t start_timeout_ns; /* 0: 120 s */
    uint64_t hang_timeout_ns;  /* longest first execution of a program; 0: 30 s */
    /* A program that has run before hangs when it takes 50 times its longest run and this; 0: 3 s.
     */
    uint64_t hang_margin_ns;
    uint64_t compile_timeout_ns;               /* 0: 20 min */
    uint64_t back_off_min_ns, back_off_max_ns; /* 0: 100 ms and 30 s */
} pjrt_supervisor_options;

typedef struct pjrt_host_facts { /* what the host said of itself at start */
    int device_count;
    char device_kind[64], platform[64], version[256];
} pjrt_host_facts;

/* Starts the host and waits until it has opened its devices; tries once. STATUS_UNAVAILABLE: may
 * pass by itself (the device is in use, the process ended; the message says how). Others will not:
 * STATUS_NOT_FOUND, no device or no such file; STATUS_UNSUPPORTED, no plugin of use. */
status pjrt_supervisor_create(const pjrt_supervisor_options *options,
                              pjrt_supervisor **out) MUST_CHECK;
void pjrt_supervisor_destroy(pjrt_supervisor *s);

void pjrt_supervisor_facts(pjrt_supervisor *s, pjrt_host_facts *out);
int pjrt_supervisor_lanes(const pjrt_supervisor *s);
/* State, reason and restarts; other fields are left alone. */
void pjrt_supervisor_describe(pjrt_supervisor *s, device_status *out);

/* Returns when the host is healthy: a caller that is not a request may wait for a restart.
 * STATUS_UNAVAILABLE after the time. */
status pjrt_supervisor_wait(pjrt_supervisor *s, uint64_t timeout_ns) MUST_CHECK;

/* Uploads a tensor to every device and keeps what is needed to do it again after a restart. Its
 * data is not needed afterwards. */
status pjrt_supervisor_add_weight(pjrt_supervisor *s, const tensor *t, uint32_t *number) MUST_CHECK;
/* Compiles in the host; the serialised program is in a memfd the caller closes. `declared` (or
 * NULL): what the program's arguments and outputs must be, else STATUS_INVALID_ARGUMENT. */
status pjrt_supervisor_compile(pjrt_supervisor *s, const char *text, size_t bytes,
                               const pjrt_declaration *declared, int *program_fd,
                               size_t *program_bytes, uint64_t *compile_ns) MUST_CHECK;
/* Loads a serialised program (the memfd is duplicated). `arguments` are copied. */
status pjrt_supervisor_add_program(pjrt_supervisor *s, int program_fd, size_t program_bytes,
                                   const pjrt_argument *arguments, int argument_count,
                                   int output_count, uint32_t *number) MUST_CHECK;
/* No batch may be using it. */
void pjrt_supervisor_remove_program(pjrt_supervisor *s, uint32_t number);
void pjrt_supervisor_remove_weight(pjrt_supervisor *s, uint32_t number);

/* Copies the inputs into the lane's slot, runs, copies the outputs back. `longest_ns` is the
 * program's: the longest run so far, 0 before the first one. STATUS_UNAVAILABLE: the
 * host is gone, hung or reported a failure; the batch may be run elsewhere. STATUS_TOO_LARGE: the
 * tensors do not fit in a slot. */
status pjrt_supervisor_execute(pjrt_supervisor *s, int device_number, int lane, uint32_t program,
                               _Atomic uint64_t *longest_ns, const tensor *inputs, int input_count,
                               tensor *outputs, int output_count) MUST_CHECK;

#endif
