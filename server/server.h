#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "batcher/scheduler.h"
#include "models/repository.h"
#include "server/options.h"

/* The HTTP edge: loops that listen, parse, admit, and answer. */
typedef struct server server;

/* Listens and starts the loops; requests are answered from here on, readiness follows the
 * repository. Everything given is borrowed until server_run() has returned. STATUS_IO: an address
 * cannot be listened on; STATUS_INVALID_ARGUMENT: a TLS file; messages name it. Signals must be
 * blocked in the calling thread (server_block_signals) so that loops inherit that. */
status server_start(const server_options *options, repository *models, scheduler *work,
                    device *const *devices, int device_count, server **out) MUST_CHECK;

/* Blocks SIGTERM, SIGINT, SIGHUP and SIGPIPE; before any thread starts. */
void server_block_signals(void);

/* Waits for signals: SIGHUP reads the TLS files again; SIGTERM or SIGINT drains (PROTOCOL.md, "For
 * load balancers") and returns; a second one ends the process at once. */
void server_run(server *s);

/* The port that listener `index` got. */
uint16_t server_port(const server *s, int index);

#endif
