#ifndef CLI_START_H
#define CLI_START_H

#include "config/config.h"
#include "server/server.h"

/* The start of `penstock serve` behind a listening edge: devices, models, scheduler. */

typedef struct server_parts server_parts;

/* Starts the devices (trying again those that may come), the models and the scheduler on a thread
 * of its own, opens `edge` with them and waits until the models are loaded. A failure that ends
 * the server is logged, and ends the process with code 1. `c` and `edge` are borrowed until
 * server_parts_stop(). STATUS_IO: no thread. */
status server_parts_start(const config *c, server *edge, server_parts **out) MUST_CHECK;

/* After server_run(). Waits for the loading and frees everything; a start whose devices are not
 * there yet is not waited for: the process ends with code 0. */
void server_parts_stop(server_parts *p);

#endif
