#ifndef SERVER_PROTOCOL_LANGUAGE_FIELDS_H
#define SERVER_PROTOCOL_LANGUAGE_FIELDS_H

#include "server/protocol/language/language.h"

/* Values that the bodies of several APIs have. For the parsers of this folder. */

typedef struct language_parser {
    language_request *request;
    const language_limits *limits;
    json_scan json;
    bool copies_texts; /* they are needed for the response, or the body goes */
} language_parser;

/* A string or null; null leaves `out` alone. */
status language_read_optional_string(language_parser *p, json_string *out) MUST_CHECK;
status language_read_optional_bool(language_parser *p, bool *out) MUST_CHECK;
/* A string that lives as long as the request, with its memory in the request's arena. */
status language_read_text(language_parser *p, json_string *out) MUST_CHECK;
/* An array of token ids, at the cursor. */
status language_read_ids(language_parser *p, text_item *out) MUST_CHECK;
status language_add(language_parser *p, text_item item) MUST_CHECK;

/* Each text becomes a pair of `query` and itself. */
void language_pair_with(language_request *r, json_string query);

/* openai.c, tei.c, rerank.c: the whole body. */
status language_parse_openai(language_parser *p) MUST_CHECK;
status language_parse_tei(language_parser *p) MUST_CHECK;
status language_parse_rerank(language_parser *p) MUST_CHECK;

#endif
