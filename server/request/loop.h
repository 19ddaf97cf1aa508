#ifndef SERVER_REQUEST_LOOP_H
#define SERVER_REQUEST_LOOP_H

#include "base/mailbox.h"
#include "batcher/job/pool.h"
#include "server/options/capacity.h"
#include "server/protocol/infer.h"
#include "server/protocol/language/language.h"
#include "server/request/deadlines.h"
#include "server/request/shared_text.h"
#include "server/request/transport.h"
#include "server/service/endpoint_load.h"
#include "server/telemetry/access_log.h"
#include "text/tokenizer.h"

/* What the requests of one event loop share: their pools, the scratch memory of parsers and
 * writers, and the mailboxes through which work comes home. Its thread owns all of it but the
 * mailboxes and the wake-up, which any thread may use. */
typedef struct request_loop {
    service *service;
    const struct request_routes *routes; /* what it answers; borrowed */
    int index;                           /* of this loop, in service->loops */
    access_table *access;                /* who is known; a reference */
    access_hasher *hasher;
    server_capacity capacity;

    request **requests; /* all there are, in use or idle: at most capacity.requests_max */
    int request_count;
    request *idle; /* linked by `next` */
    uint64_t next_serial;
    job_pool jobs;
    deadlines deadlines;

    job **parsed_jobs; /* where parsers put jobs: limits.request_jobs_max */
    infer_scratch scratch;
    tokenizer_scratch *text_scratch;  /* NULL until it is needed */
    language_request *idle_languages; /* linked by `next` */
    int idle_language_count;
    text_buffer text; /* a response while it is written */
    shared_texts shared_texts;
    endpoint_load load;
    access_log log;

    mailbox returned;      /* jobs that are done */
    mailbox messages;      /* request_message */
    _Atomic bool is_awake; /* no need to write to wake_fd */
    int wake_fd;           /* event descriptor */
} request_loop;

/* STATUS_OUT_OF_MEMORY, STATUS_IO: no descriptor is left. */
status request_loop_init(request_loop *l, service *s, const struct request_routes *routes,
                         int index) MUST_CHECK;
/* Every request must have been released, unless the process ends. */
void request_loop_dispose(request_loop *l);

/* A reset one from the loop's pool; NULL: memory is out. */
language_request *request_loop_acquire_language(request_loop *l);
void request_loop_release_language(request_loop *l, language_request *language);

/* Takes the service's present table of who is known. */
void request_loop_renew_access(request_loop *l);

/* Makes the loop look into its mailboxes. Any thread. Writes to the descriptor only if the loop
 * sleeps, so call it after posting. */
void request_loop_wake(request_loop *l);

#endif
