#ifndef SERVER_SERVICE_ENDPOINT_LOAD_H
#define SERVER_SERVICE_ENDPOINT_LOAD_H

#include "base/text/text_buffer.h"
#include "server/service/service.h"

/* The value of the endpoint-load-metrics header: an ORCA load report in its text form, which load
 * balancers weigh servers by. */

/* The last sample of device utilisation; each loop keeps its own. Zeroed is none. */
typedef struct endpoint_load {
    uint64_t sampled_ns, busy_ns;
    double utilisation; /* 0 to 1: share of execution slots' time that was spent executing */
} endpoint_load;

/* The same as the message xds.data.orca.v3.OrcaLoadReport. */
void endpoint_load_write_message(endpoint_load *l, const service *s, uint64_t now_ns,
                                 text_buffer *out);

/* Appends the report. Samples the devices again when the last sample is 200 ms old. The service is
 * open. */
void endpoint_load_write(endpoint_load *l, const service *s, uint64_t now_ns, text_buffer *out);

#endif
