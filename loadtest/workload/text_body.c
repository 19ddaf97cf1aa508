#include "loadtest/workload/text_body.h"

#include <jansson.h>
#include <stdlib.h>

static json_t *make(source_format format, const char *model, const char *text)
{
    switch (format) {
    case SOURCE_OPENAI:
        return json_pack("{s:s, s:s, s:s}", "model", model, "input", text, "encoding_format",
                         "base64");
    case SOURCE_TEI:
        return json_pack("{s:s, s:b}", "inputs", text, "truncate", 1);
    case SOURCE_TENSORFLOW:
        return json_pack("{s:[s]}", "instances", text);
    default:
        return json_pack("{s:[{s:s, s:s, s:[i], s:[s]}]}", "inputs", "name", "text", "datatype",
                         "BYTES", "shape", 1, "data", text);
    }
}

status text_body_write(text_buffer *body, source_format format, const char *model, const char *text)
{
    json_t *json = make(format, model, text);
    char *written = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (written == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "a text that is not UTF-8");
    text_buffer_put(body, written);
    free(written);
    text_buffer_require(body, 0);
    return STATUS_OK;
}
