#ifndef SERVER_ROUTES_FIELDS_H
#define SERVER_ROUTES_FIELDS_H

#include "server/protocol/text/json_scan.h"
#include "server/request/request.h"

/* Bodies that are one JSON object with a few fields. */

/* Reads the value of `key`, or skips or refuses it. */
typedef status (*request_field_fn)(json_scan *scan, json_string key, void *into);

/* Calls `read` for each field of the body; nothing may follow the object. Texts that have escapes
 * lie in `memory`. STATUS_INVALID_ARGUMENT: the body is no such object; else what `read` returns.
 */
status request_read_fields(const request *r, arena *memory, request_field_fn read,
                           void *into) MUST_CHECK;

#endif
