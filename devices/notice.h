#ifndef DEVICES_NOTICE_H
#define DEVICES_NOTICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* A notice that devices are about to be taken away: maintenance, preemption. */

#define DEVICE_NOTICE_BYTES 4096

/* Reads a source: the path of a file, or http://HOST[:PORT]/PATH, asked as Google's metadata server
 * wants it. A file that is not there, and code 404, are an empty text. Blocks for some seconds at
 * most. STATUS_IO, STATUS_UNAVAILABLE: it cannot be read; STATUS_INVALID_ARGUMENT: it is no such
 * source. */
status device_notice_read(const char *source, char text[DEVICE_NOTICE_BYTES]) MUST_CHECK;

/* Does that text tell device `name` ("pjrt:0") to stop? Empty, NONE, FALSE, NULL and 0 tell nobody;
 * names of devices tell these; any other text tells all. */
bool device_notice_tells(const char *text, const char *name);

#endif
