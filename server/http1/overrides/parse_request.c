#include "server/http1/overrides/parse_request.h"

#include <assert.h>
#include <dlfcn.h>
#include <string.h>
#include <strings.h>

#include "server/protocol/head_check.h"

typedef int parse_function(const char *, size_t, const char **, size_t *, const char **, size_t *,
                           int *, parse_request_header *, size_t *, size_t);

/* Constant once loops run. */
static parse_function *library_parse;
static parse_request_on_refused *on_refused_head;
static parse_request_on_body *on_body_ahead;

void parse_request_install(parse_request_on_refused *on_refused, parse_request_on_body *on_body)
{
    on_refused_head = on_refused;
    on_body_ahead = on_body;
    library_parse = (parse_function *)dlsym(RTLD_NEXT, "phr_parse_request");
    assert(library_parse != NULL);
    assert(dlsym(RTLD_DEFAULT, "phr_parse_request") == (void *)phr_parse_request);
}

/* `n` is what the library's function made of it. 0: there is nothing to refuse. */
static int refusal(const char *head, size_t bytes, int n, head_facts *facts, const char **why)
{
    *why = "the request head is larger than 65536 bytes";
    if (n > PARSE_REQUEST_HEAD_BYTES_MAX || (n == -2 && bytes > PARSE_REQUEST_HEAD_BYTES_MAX))
        return 431;
    if (n == -2)
        return 0;
    status failure = head_check(head, n >= 0 ? (size_t)n : bytes, facts);
    if (failure)
        *why = n >= 0 ? status_message() : "malformed request head";
    else if (n < 0) /* nothing is wrong with it: the library has no room for so many headers */
        *why = "the request has more than 100 headers";
    return failure ? failure == STATUS_UNSUPPORTED ? 501 : 400 : n < 0 ? 431 : 0;
}

/* The path of a target in absolute-form; what stands before it names a host, as Host does. */
static void cut_authority(const char **path, size_t *bytes, size_t authority_bytes)
{
    static const char root[] = "/";
    char *after = (char *)*path + authority_bytes;
    *bytes -= authority_bytes;
    if (*bytes == 0) {
        *path = root;
        *bytes = 1;
    } else if (*after == '?') { /* the input is the library's to change, and so ours */
        *--after = '/';
        *path = after;
        (*bytes)++;
    } else {
        *path = after;
    }
}

static bool name_is(const parse_request_header *h, const char *name)
{
    return h->name_bytes == strlen(name) && strncasecmp(h->name, name, h->name_bytes) == 0;
}

/* The library answers Expect even to HTTP/1.0, and of Connection it sees the last field, where
 * keep-alive beats close (RFC 9110, section 10.1.1; RFC 9112, section 9.3). */
static void mend_headers(const head_facts *facts, parse_request_header *headers, size_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (facts->is_old && name_is(&headers[i], "expect"))
            continue;
        headers[kept] = headers[i];
        if (facts->has_close && name_is(&headers[kept], "connection")) {
            headers[kept].value = "close";
            headers[kept].value_bytes = strlen("close");
        }
        kept++;
    }
    *count = kept;
}

int phr_parse_request(const char *head, size_t bytes, const char **method, size_t *method_bytes,
                      const char **path, size_t *path_bytes, int *minor_version,
                      parse_request_header *headers, size_t *header_count, size_t bytes_before)
{
    static const char refused_method[] = "GET", refused_path[] = "/";
    head_facts facts;
    const char *why;
    size_t skip = 0; /* empty lines before the request line: the library skips one */
    while (bytes - skip >= 2 && head[skip] == '\r' && head[skip + 1] == '\n')
        skip += 2;
    int n = library_parse(head + skip, bytes - skip, method, method_bytes, path, path_bytes,
                          minor_version, headers, header_count,
                          bytes_before > skip ? bytes_before - skip : 0);
    n = n >= 0 ? n + (int)skip : n;
    int code = refusal(head, bytes, n, &facts, &why);
    bool is_refused = code != 0;
    if (n >= 0 && !is_refused && facts.has_body)
        code = on_body_ahead(head, headers, *header_count);
    if (code == 0) {
        if (n >= 0 && facts.authority_bytes > 0)
            cut_authority(path, path_bytes, facts.authority_bytes);
        if (n >= 0 && ((facts.is_old && facts.has_expect) || facts.has_close))
            mend_headers(&facts, headers, header_count);
        return n;
    }
    if (is_refused && !on_refused_head(head, code, why))
        return -1;
    *method = refused_method;
    *method_bytes = sizeof(refused_method) - 1;
    *path = refused_path;
    *path_bytes = sizeof(refused_path) - 1;
    *minor_version = 1;
    *header_count = 0;
    return n > 0 ? n : (int)bytes;
}
