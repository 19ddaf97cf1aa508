#ifndef SERVER_ROUTES_METRICS_EXPOSITION_H
#define SERVER_ROUTES_METRICS_EXPOSITION_H

#include <stdint.h>

#include "base/text/text_buffer.h"

/* Writes Prometheus' text exposition format 0.0.4. Names are given without "penstock_". */

void exposition_family(text_buffer *out, const char *name, const char *type, const char *help);

/* ,key="value", or without the comma where it is the first; the value is escaped. */
void exposition_label(text_buffer *out, bool is_first, const char *key, const char *value);

/* penstock_NAME{model="m",version="1" and leaves the brace open. */
void exposition_open_model(text_buffer *out, const char *name, const char *model, int64_t version);

/* "} VALUE". */
void exposition_close(text_buffer *out, double value);
void exposition_close_count(text_buffer *out, uint64_t value);

/* A family of one sample without labels. */
void exposition_gauge(text_buffer *out, const char *name, const char *help, double value);
void exposition_counter(text_buffer *out, const char *name, const char *help, uint64_t value);

#endif
