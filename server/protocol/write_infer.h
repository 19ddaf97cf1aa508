#ifndef SERVER_PROTOCOL_WRITE_INFER_H
#define SERVER_PROTOCOL_WRITE_INFER_H

#include "base/text/text_buffer.h"
#include "server/protocol/infer.h"

/* The responses to inference requests whose jobs are done without failure. */

/* JSON of POST .../infer; outputs asked for in binary are announced and follow it. Appends. */
void write_kserve(text_buffer *out, const infer_request *r);
/* Bytes of that output in its binary form. */
size_t write_binary_bytes(const tensor *t);
/* JSON of POST ...:predict. Appends. */
void write_tensorflow(text_buffer *out, const infer_request *r);

/* The binary form of a tensor of strings: each with its length before it, uint32 little-endian.
 * `out` has room for write_strings_bytes(). */
size_t write_strings_bytes(const tensor *t);
void write_strings(char *out, const tensor *t);

#endif
