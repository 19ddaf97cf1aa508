#include "server/http1/overrides/parse_request.h"

#include <assert.h>
#include <dlfcn.h>
#include <string.h>

#include "server/protocol/head_check.h"

typedef int parse_function(const char *, size_t, const char **, size_t *, const char **, size_t *,
                           int *, void *, size_t *, size_t);

/* Constant once loops run. */
static parse_function *library_parse;
static parse_request_on_refused *on_refused_head;

void parse_request_install(parse_request_on_refused *on_refused)
{
    on_refused_head = on_refused;
    library_parse = (parse_function *)dlsym(RTLD_NEXT, "phr_parse_request");
    assert(library_parse != NULL);
    assert(dlsym(RTLD_DEFAULT, "phr_parse_request") == (void *)phr_parse_request);
}

/* `n` is what the library's function made of it. 0: there is nothing to refuse. */
static int refusal(const char *head, size_t bytes, int n, const char **why)
{
    static const char preface[] = "PRI * HTTP/2";
    *why = "the request head is larger than 65536 bytes";
    if (n > PARSE_REQUEST_HEAD_BYTES_MAX || (n == -2 && bytes > PARSE_REQUEST_HEAD_BYTES_MAX))
        return 431;
    if (n >= 0) {
        if (head_check(head, (size_t)n) == STATUS_OK)
            return 0;
        *why = status_message();
        return 400;
    }
    /* The library recognises HTTP/2 by its preface being malformed. */
    if (n != -1 ||
        (bytes >= sizeof(preface) - 1 && memcmp(head, preface, sizeof(preface) - 1) == 0))
        return 0;
    /* The library failed at a head with nothing wrong in it: it has no room for so many headers. */
    bool is_sound = head_check(head, bytes) == STATUS_OK;
    *why = is_sound ? "the request has more than 100 headers" : "malformed request head";
    return is_sound ? 431 : 400;
}

int phr_parse_request(const char *head, size_t bytes, const char **method, size_t *method_bytes,
                      const char **path, size_t *path_bytes, int *minor_version, void *headers,
                      size_t *header_count, size_t bytes_before)
{
    static const char refused_method[] = "GET", refused_path[] = "/";
    int n = library_parse(head, bytes, method, method_bytes, path, path_bytes, minor_version,
                          headers, header_count, bytes_before);
    const char *why;
    int code = refusal(head, bytes, n, &why);
    if (code == 0)
        return n;
    if (!on_refused_head(head, code, why))
        return -1;
    *method = refused_method;
    *method_bytes = sizeof(refused_method) - 1;
    *path = refused_path;
    *path_bytes = sizeof(refused_path) - 1;
    *minor_version = 1;
    *header_count = 0;
    return n > 0 ? n : (int)bytes;
}
