#ifndef DEVICES_PJRT_SUPERVISOR_OUTPUT_H
#define DEVICES_PJRT_SUPERVISOR_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

/* Writes what a plugin prints to the server's log, line by line; informative lines appear with
 * --log-level debug only. The supervising thread. */

#define PJRT_OUTPUT_LINE_BYTES 1024

typedef struct pjrt_output {
    char line[PJRT_OUTPUT_LINE_BYTES];
    size_t bytes;
    char last_error[200]; /* the last line that was not informative: often why a host ended */
} pjrt_output;

/* Logs each complete line and keeps the rest for the next call. */
void pjrt_output_feed(pjrt_output *o, const char *text, size_t bytes);
/* The host is gone: logs the rest. */
void pjrt_output_flush(pjrt_output *o);

/* The level of a line. Plugins log like absl and glog: a line begins with a letter of IWEF and four
 * digits (the date). */
log_level pjrt_output_level(const char *line);

#endif
