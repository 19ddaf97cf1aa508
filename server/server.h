#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "batcher/scheduler.h"
#include "models/repository/repository.h"
#include "server/options/options.h"

/* The HTTP edge: event loops that listen, and answer requests. */
typedef struct server server;

/* Listens and starts the loops. Until server_open() only health, metrics and the status page
 * answer; other routes get 503. `options` are borrowed until server_run() has returned. STATUS_IO:
 * an address cannot be listened on, or the access log not opened; STATUS_INVALID_ARGUMENT: a TLS
 * file; messages name it. Nothing is left behind then. Signals must be blocked in the calling
 * thread (server_block_signals), so that loops inherit that. */
status server_start(const server_options *options, server **out) MUST_CHECK;

/* What requests are served with; all of it borrowed until server_run() has returned. */
typedef struct server_backend {
    repository *models;
    scheduler *work;
    device *const *devices;
    int device_count;
} server_backend;

/* From now on every route answers; readiness follows the repository. Once, from any thread. */
void server_open(server *s, const server_backend *backend);
bool server_is_open(const server *s);

/* Before server_open(): what the start is doing, for the bodies of /v2/health/ready and of 503s.
 * Copied, cut at 511 bytes. Any thread. */
void server_set_progress(server *s, const char *progress);
/* Why a device that was asked for is not there; "": none is missing. For bodies of
 * /v2/health/ready and /metrics. Copied, cut. Any thread. */
void server_set_missing(server *s, const char *why);
/* Counts memory of executions with what is held for clients; valid as long as the server. */
device_memory server_device_memory(server *s);
/* A try to start a device has failed: for /metrics. Any thread. */
void server_count_start_failure(server *s);

/* Blocks SIGTERM, SIGINT, SIGHUP and SIGPIPE; before any thread starts. */
void server_block_signals(void);

/* Waits for signals: SIGHUP reads the TLS files and the keys again, and looks at the models on
 * disk; SIGTERM or SIGINT drains (server/README.md) and returns; a second one ends the process at
 * once. */
void server_run(server *s);

/* After server_run() and scheduler_destroy(): jobs that came back last give up their models. */
void server_collect(server *s);

/* After server_run(), or instead of it: `s` is gone. The loops' threads sleep, and keep what they
 * share, until the process ends. */
void server_release(server *s);

#endif
