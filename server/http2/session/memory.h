#ifndef SERVER_HTTP2_SESSION_MEMORY_H
#define SERVER_HTTP2_SESSION_MEMORY_H

#include <stddef.h>

/* Memory that the HTTP/2 sessions of one loop share: freed blocks are kept by size, and used again
 * before malloc is asked, so that steady traffic allocates nothing. A zeroed one is empty. One
 * thread. */

#define HTTP2_MEMORY_CLASSES 8 /* blocks of 32, 64, ... 4096 bytes are kept */

typedef struct http2_memory {
    struct http2_block *kept[HTTP2_MEMORY_CLASSES];
    size_t kept_bytes;
} http2_memory;

/* No session uses it any more. */
void http2_memory_dispose(http2_memory *m);

/* Uninitialised; aligned for any type. NULL: no memory. */
void *http2_memory_allocate(http2_memory *m, size_t bytes);
/* As realloc(): on failure the old block stays as it is. */
void *http2_memory_reallocate(http2_memory *m, void *old, size_t bytes);
/* Of what http2_memory_allocate() returned. */
void http2_memory_free(http2_memory *m, void *p);
/* What such a block takes, all in all: to be counted before it is freed. */
size_t http2_memory_block_bytes(const void *p);

#endif
