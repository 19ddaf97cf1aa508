#ifndef SERVER_PROTOCOL_TEXT_TEXT_ITEM_H
#define SERVER_PROTOCOL_TEXT_TEXT_ITEM_H

#include "server/protocol/text/json_scan.h"

/* Texts of a request, before they are tokens. Whatever the protocol, each becomes a row. */

typedef struct text_item {
    json_string text;
    json_string pair;   /* the second text of a pair; text NULL: there is none */
    const int64_t *ids; /* token ids that were given in place of text; NULL: none */
    int64_t id_count;
} text_item;

#define TEXT_ID_BYTES 4 /* that a token id counts as, where texts are counted */

/* Zeroed is empty; the items lie in the arena of text_list_add(). */
typedef struct text_list {
    text_item *items;
    int64_t count, capacity;
    size_t bytes; /* of all texts, token ids among them */
} text_list;

/* STATUS_OUT_OF_MEMORY. */
status text_list_add(text_list *l, arena *memory, text_item item) MUST_CHECK;

/* How texts become rows. */
typedef struct text_options {
    bool truncates;      /* cut to the model's limit; else a longer text is refused */
    bool cuts_left;      /* at the beginning */
    json_string prompt;  /* the name of a prompt of the model; text NULL: its default */
    bool ignores_prompt; /* not even the default */
} text_options;

#endif
