#ifndef SERVER_PROTOCOL_LANGUAGE_LANGUAGE_H
#define SERVER_PROTOCOL_LANGUAGE_LANGUAGE_H

#include "server/protocol/route.h"
#include "server/protocol/text/text_item.h"

/* The body of a request to a route that takes text, whatever its API: OpenAI's embeddings, the
 * routes of Hugging Face's text-embeddings-inference (TEI), Cohere's and Jina's rerank. The parsers
 * fill it without knowing the model; write_language.h writes the response. */

typedef enum language_task {
    LANGUAGE_EMBED,        /* a vector for each text */
    LANGUAGE_EMBED_TOKENS, /* a vector for each token */
    LANGUAGE_EMBED_SPARSE, /* weights of the vocabulary's words for each text */
    LANGUAGE_RERANK,       /* a score for each text beside a query */
    LANGUAGE_PREDICT,      /* classes of a text or its tokens, or the answer to a question */
    LANGUAGE_SIMILARITY,   /* of the first text with each of the others */
    LANGUAGE_TOKENIZE,
    LANGUAGE_DECODE,
} language_task;

/* What was wrong, in OpenAI's terms. Static strings. */
typedef struct language_fault {
    const char *code;   /* "empty_array"; NULL: none */
    char parameter[48]; /* "input[3]"; "": none */
} language_fault;

typedef struct language_request {
    struct language_request *next; /* idle in a pool */
    language_task task;
    route_dialect dialect;
    arena memory;
    json_string model; /* text NULL: none is named */
    text_list texts;
    text_options options;
    bool is_single; /* the text came alone, not in a list: so does the result */
    bool normalizes, as_base64, raw_scores, returns_text;
    bool adds_special, skips_special; /* tokenize, decode */
    int64_t dimensions;               /* 0: all */
    int64_t results_max;              /* of a rerank; 0: all */
    int64_t tokens;                   /* of all rows, once they are tokens */
    language_fault fault;
} language_request;

/* What parsing needs beside the body. */
typedef struct language_limits {
    int64_t items_max; /* texts in one TEI request */
    size_t bytes_max;  /* of all texts */
    int json_depth_max;
    bool keeps_body; /* the body stays until the texts are tokens; else they are copied */
    const cancel_token *cancel;
} language_limits;

#define LANGUAGE_OPENAI_ITEMS_MAX 2048

/* Zeroed but for its memory, which is kept. */
void language_request_reset(language_request *r, size_t keep_bytes);

/* The body of that route into `r`, which is reset. STATUS_INVALID_ARGUMENT, with r->fault where the
 * API has a code for it; STATUS_TOO_LARGE: too many texts, or too long
 * ones together. */
status language_parse(language_request *r, route_kind kind, const language_limits *l,
                      const char *body, size_t bytes) MUST_CHECK;

/* Sets the fault and fails; `parameter` may be "". */
status language_fail(language_request *r, status code, const char *fault, const char *parameter,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
