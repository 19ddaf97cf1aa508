#ifndef DEVICES_PJRT_SUPERVISOR_OUTPUT_H
#define DEVICES_PJRT_SUPERVISOR_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

/* What a plugin prints goes to our log, line by line: compilers are talkative, and a server's log
 * has one format. Informative lines of plugins are for --log-level debug. The supervising thread
 * only. */

#define PJRT_OUTPUT_LINE_BYTES 1024

typedef struct pjrt_output {
    char line[PJRT_OUTPUT_LINE_BYTES];
    size_t bytes;
    char last_words[200]; /* the last line that was no information: why a host ended, often */
} pjrt_output;

/* Logs each complete line; the rest waits for the next call. */
void pjrt_output_feed(pjrt_output *o, const char *text, size_t bytes);
/* The host is gone: what waits is a line. */
void pjrt_output_flush(pjrt_output *o);

/* How important a line is. Plugins log as absl and glog do: a letter of IWEF and four digits (of
 * the date) begin it. */
log_level pjrt_output_level(const char *line);

#endif
