#ifndef SERVER_REQUEST_SHARED_TEXT_H
#define SERVER_REQUEST_SHARED_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "server/protocol/compress.h"
#include "server/protocol/route.h"

/* Responses that cost much to make: /metrics, statistics, the index. Each loop may spend a
 * twentieth of its time on them, and 50 ms at once. While more is asked for, requests share a text
 * that was made before, at most a second ago, and the response has an Age; so who asks now and then
 * always gets a new one. One thread. */

#define SHARED_TEXTS_MAX 8

/* Which text: its route, what else it depends on (a model, or any value), and the coding that the
 * client takes. */
typedef struct shared_text_key {
    route_kind kind;
    const void *about;
    content_coding coding;
} shared_text_key;

typedef struct shared_text {
    shared_text_key key;
    content_coding coding; /* that it is in */
    uint64_t made_ns;      /* 0: empty */
    char *data;            /* malloc'd */
    size_t bytes;
} shared_text;

/* Zeroed is empty. */
typedef struct shared_texts {
    shared_text texts[SHARED_TEXTS_MAX];
    int64_t spent_ns; /* of what may be spent at once */
    uint64_t counted_ns;
} shared_texts;

/* The text to send; NULL: a new one is to be made. Borrowed until the next shared_texts_put(). */
const shared_text *shared_texts_find(shared_texts *all, shared_text_key key, uint64_t now_ns);

/* A text was made from `begin_ns` to `now_ns`: keeps it, in place of the oldest. Takes `data`. */
const shared_text *shared_texts_put(shared_texts *all, shared_text_key key, content_coding coding,
                                    char *data, size_t bytes, uint64_t begin_ns, uint64_t now_ns);

void shared_texts_dispose(shared_texts *all);

#endif
