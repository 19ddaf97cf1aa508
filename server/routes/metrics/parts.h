#ifndef SERVER_ROUTES_METRICS_PARTS_H
#define SERVER_ROUTES_METRICS_PARTS_H

#include "server/service/service.h"

/* The parts of /metrics. Labels are models, stages, buckets and devices: as many as the operator
 * configured, never what clients send. Any thread. */

/* Inference requests by code and reason, and what they took. */
void metrics_write_requests(text_buffer *out, const recorder *r, uint64_t now_ns);
/* Batches, queues, programs and buckets of those models. */
void metrics_write_models(text_buffer *out, service *s, const model **models, int count);
void metrics_write_devices(text_buffer *out, service *s, uint64_t now_ns);
/* The process, its connections and event loops. */
void metrics_write_server(text_buffer *out, service *s, uint64_t now_ns);
/* The same under the names that Triton has (metrics.triton_names). */
void metrics_write_triton(text_buffer *out, service *s, const model **models, int count);

#endif
