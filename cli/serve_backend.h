#ifndef CLI_SERVE_BACKEND_H
#define CLI_SERVE_BACKEND_H

#include "config/config.h"
#include "server/server.h"

/* What `penstock serve` runs behind its HTTP edge: devices, models, scheduler. */

typedef struct serve_backend serve_backend;

/* Starts the devices, the models and the scheduler, opens `edge` to requests and waits on a thread
 * of its own until the models are loaded. With plugins, that thread does all of this, and retries
 * devices that are not available yet. A failure is logged and ends the process with status 1. `c`
 * and `edge` are borrowed until serve_backend_stop(). STATUS_IO: no thread. */
status serve_backend_start(const config *c, server *edge, serve_backend **out) MUST_CHECK;

/* After server_run(). Waits until the models are loaded and frees everything. If the devices have
 * not started yet, it ends the process with status 0 instead of waiting for them. */
void serve_backend_stop(serve_backend *b);

#endif
