#ifndef SERVER_TELEMETRY_ACCESS_LOG_H
#define SERVER_TELEMETRY_ACCESS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/text_buffer.h"
#include "server/telemetry/record.h"

/* A line for each request: a JSON object, or on a terminal, text for people. Each loop gathers its
 * lines and writes them in one go, at the latest when access_log_flush() is called. A loop waits
 * for no reader: lines that a pipe has no room for wait, up to ACCESS_LOG_BYTES_MAX, and further
 * ones are dropped and counted. */
#define ACCESS_LOG_BYTES_MAX ((size_t)1 << 20)

typedef struct access_log {
    int fd;       /* -1: there is no log */
    bool is_pipe; /* or a terminal: its reader may be slow */
    bool is_socket, is_terminal;
    text_buffer lines;
    size_t flush_bytes;        /* written when so much has gathered */
    _Atomic uint64_t *dropped; /* counts lines that were not written; NULL: nobody counts */
} access_log;

typedef struct access_text {
    const char *data;
    size_t bytes;
} access_text;

typedef struct access_entry {
    access_text peer, method, path;
    access_text trace; /* traceparent; NULL: none */
    access_text id;    /* the client's own; NULL: none */
    access_text model; /* NULL: it reached none */
    int64_t version;
    const char *tenant;   /* NULL: it is known of no tenant */
    const char *protocol; /* "h2", "http/1.1", "http/1.0" */
    int code;
    size_t request_bytes, response_bytes;
    bool is_inference; /* of a known model: the sample's stages and rows are written */
    const record_sample *sample;
} access_entry;

/* Opens the file for appending; "-" is standard output, NULL gives -1. Pipes are opened so that a
 * write does not wait. STATUS_IO names the file. */
status access_log_open(const char *file, int *fd) MUST_CHECK;
/* Of a loop; `fd` is borrowed. */
void access_log_init(access_log *log, int fd, _Atomic uint64_t *dropped);

/* Appends a line, and writes what has gathered if that is much. Lines of a pipe are written whole,
 * as far as PIPE_BUF allows: loops share it. */
void access_log_add(access_log *log, const access_entry *e, uint64_t now_ns);
void access_log_flush(access_log *log);
void access_log_dispose(access_log *log);

#endif
