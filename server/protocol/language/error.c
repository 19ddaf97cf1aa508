#include "server/protocol/language/error.h"

#include <assert.h>

#include "server/protocol/text/text_write.h"

/* Sources: OpenAI's guide to error codes; ErrorType in text-embeddings-inference. */

int language_error_code(route_dialect dialect, status s, const language_fault *fault)
{
    bool is_tei = dialect == ROUTE_TEI;
    switch (s) {
    case STATUS_INVALID_ARGUMENT:
        return is_tei && (fault == NULL || fault->code == NULL) ? 422 : 400;
    case STATUS_UNSUPPORTED:
        return is_tei ? 424 : 400;
    case STATUS_NOT_FOUND:
        return 404;
    case STATUS_TOO_LARGE:
        return dialect == ROUTE_OPENAI ? 400 : 413;
    case STATUS_UNSUPPORTED_CODING:
        return 415;
    case STATUS_RESOURCE_EXHAUSTED:
        return 429;
    case STATUS_UNAVAILABLE:
    case STATUS_OUT_OF_MEMORY:
        return 503;
    case STATUS_DEADLINE_EXCEEDED:
        return 504;
    case STATUS_CANCELLED:
        return 499;
    default:
        return is_tei ? 424 : 500;
    }
}

static const char *tei_type(int code)
{
    switch (code) {
    case 400:
        return "Empty";
    case 424:
    case 500:
    case 504:
        return "Backend";
    case 429:
        return "Overloaded";
    case 503:
        return "Unhealthy";
    default:
        return "Validation";
    }
}

static const char *openai_code(int code, const language_fault *fault)
{
    if (fault != NULL && fault->code != NULL)
        return fault->code;
    return code == 404   ? "model_not_found"
           : code == 429 ? "rate_limit_exceeded"
           : code == 503 ? "service_unavailable"
           : code == 504 ? "timeout"
                         : NULL;
}

static void write_openai(text_buffer *out, int code, const char *message,
                         const language_fault *fault)
{
    const char *name = openai_code(code, fault);
    text_buffer_put(out, "{\"error\":{\"message\":");
    text_write_json_text(out, message);
    text_buffer_put(out, code == 429   ? ",\"type\":\"rate_limit_error\",\"param\":"
                         : code >= 500 ? ",\"type\":\"server_error\",\"param\":"
                                       : ",\"type\":\"invalid_request_error\",\"param\":");
    if (fault != NULL && fault->parameter[0])
        text_write_json_text(out, fault->parameter);
    else
        text_buffer_put(out, "null");
    text_buffer_put(out, ",\"code\":");
    if (name != NULL)
        text_write_json_text(out, name);
    else
        text_buffer_put(out, "null");
    text_buffer_put(out, "}}");
}

void language_write_error(text_buffer *out, route_dialect dialect, int code, const char *message,
                          const language_fault *fault)
{
    if (dialect == ROUTE_OPENAI) {
        write_openai(out, code, message, fault);
        return;
    }
    assert(dialect == ROUTE_TEI || dialect == ROUTE_COHERE);
    text_buffer_put(out, dialect == ROUTE_TEI ? "{\"error\":" : "{\"message\":");
    text_write_json_text(out, message);
    text_buffer_put(out, dialect == ROUTE_TEI ? ",\"error_type\":" : ",\"detail\":");
    text_write_json_text(out, dialect == ROUTE_TEI ? tei_type(code) : message);
    text_buffer_put(out, "}");
}
