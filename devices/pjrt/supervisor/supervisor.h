#ifndef DEVICES_PJRT_SUPERVISOR_SUPERVISOR_H
#define DEVICES_PJRT_SUPERVISOR_SUPERVISOR_H

#include "devices/device.h"
#include "devices/pjrt/protocol/protocol.h"
#include "devices/pjrt/protocol/signature.h"

/* The server's side of one device host: starts the child process; restarts it with back-off when it
 * exits, crashes or hangs; sends weights and programs again after a restart; runs batches. A plugin
 * that fails cannot end the server.
 *
 * One thread supervises. Other functions may be called from any thread, but each execution slot has
 * one caller of execute() at a time. */

typedef struct pjrt_supervisor pjrt_supervisor;

typedef struct pjrt_supervisor_options {
    const char *host_program;  /* the penstock binary; NULL: this process's own */
    const char *plugin;        /* path of the plugin */
    int slots_per_device;      /* 0: 4; how many are used is the device's to say */
    size_t slot_memory_bytes;  /* all tensors of a batch; 0: 256 MiB (only pages that are used cost
                                  memory) */
    uint64_t start_timeout_ns; /* 0: 120 s */
    uint64_t hang_timeout_ns;  /* longest first execution of a program; 0: 30 s */
    /* A program that has run before may take 50 times its longest run and this; 0: 3 s. */
    uint64_t hang_margin_ns;
    uint64_t compile_timeout_ns;               /* 0: 20 min */
    uint64_t back_off_min_ns, back_off_max_ns; /* 0: 100 ms and 30 s */
} pjrt_supervisor_options;

typedef struct pjrt_host_facts { /* reported by the host at start */
    int device_count;
    int64_t memory_bytes; /* of each device; 0: not known */
    char device_kind[64], platform[64], version[256];
    char fingerprint[64]; /* of the programs that it can run; "": the plugin does not tell */
} pjrt_host_facts;

/* Starts the host and waits until it has opened its devices; tries once. STATUS_UNAVAILABLE: a
 * transient failure (the device is in use, the process ended). Permanent ones: STATUS_NOT_FOUND, no
 * device or no such file; STATUS_UNSUPPORTED, not a usable plugin. */
status pjrt_supervisor_create(const pjrt_supervisor_options *options,
                              pjrt_supervisor **out) MUST_CHECK;
void pjrt_supervisor_destroy(pjrt_supervisor *s);

void pjrt_supervisor_facts(pjrt_supervisor *s, pjrt_host_facts *out);
/* Execution slots of a device, for that slots_per_device. */
int pjrt_supervisor_slots(int slots_per_device);
/* State, reason and restarts; other fields are left alone. */
void pjrt_supervisor_describe(pjrt_supervisor *s, device_status *out);

/* Waits until the host is healthy, at most `timeout_ns`: for loading, never for requests.
 * STATUS_UNAVAILABLE: it is not. */
status pjrt_supervisor_wait(pjrt_supervisor *s, uint64_t timeout_ns) MUST_CHECK;

/* Uploads a tensor to every device, now and after each restart. Its data is copied. */
status pjrt_supervisor_add_weight(pjrt_supervisor *s, const tensor *t, uint32_t *number) MUST_CHECK;
typedef struct pjrt_host_compiled {
    int fd; /* a memfd with the serialised program; the caller closes it */
    size_t bytes;
    uint64_t compile_ns;
    int64_t code_bytes, output_bytes, temporary_bytes, peak_bytes; /* -1: not known */
    hlo_summary hlo; /* zero where the plugin does not show its programs */
} pjrt_host_compiled;
/* Compiles in the host. `declared` (or NULL): the arguments and outputs that the program must have,
 * else STATUS_INVALID_ARGUMENT. */
status pjrt_supervisor_compile(pjrt_supervisor *s, const char *text, size_t bytes,
                               const pjrt_declaration *declared,
                               pjrt_host_compiled *out) MUST_CHECK;
/* Loads a serialised program (the memfd is duplicated). `arguments` are copied. */
status pjrt_supervisor_add_program(pjrt_supervisor *s, int program_fd, size_t program_bytes,
                                   const pjrt_argument *arguments, int argument_count,
                                   int output_count, uint32_t *number) MUST_CHECK;
/* No batch may be using it. */
void pjrt_supervisor_remove_program(pjrt_supervisor *s, uint32_t number);
void pjrt_supervisor_remove_weight(pjrt_supervisor *s, uint32_t number);

/* Records a profile for `duration_ns`; returns when it has begun. STATUS_UNSUPPORTED: the plugin
 * has no profiler; STATUS_RESOURCE_EXHAUSTED: one is recorded now. */
status pjrt_supervisor_profile(pjrt_supervisor *s, uint64_t duration_ns) MUST_CHECK;
/* Waits for its end; `*data` (an XSpace) is malloc'd. STATUS_NOT_FOUND: there is none. */
status pjrt_supervisor_take_profile(pjrt_supervisor *s, void **data, size_t *bytes) MUST_CHECK;

/* Of an execution. */
typedef struct pjrt_run_statistics {
    _Atomic uint64_t *longest_ns; /* in and out: the program's longest run; 0 before the first */
    pjrt_times times;             /* out; zeros: not known */
    uint64_t pinned_bytes;        /* out: of the slot's memory */
} pjrt_run_statistics;

/* Copies the inputs into the slot's memory, runs, copies the outputs back. `run` is written after
 * success only. STATUS_UNAVAILABLE: the host is gone, hung
 * or reported a failure; the batch may run elsewhere. STATUS_TOO_LARGE: the tensors do not fit. */
status pjrt_supervisor_execute(pjrt_supervisor *s, int device_number, int slot, uint32_t program,
                               pjrt_run_statistics *run, const tensor *inputs, int input_count,
                               tensor *outputs, int output_count) MUST_CHECK;

#endif
