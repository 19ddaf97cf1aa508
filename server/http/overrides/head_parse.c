#include "server/http/overrides/head_parse.h"

#include <assert.h>
#include <dlfcn.h>
#include <string.h>

#include "server/protocol/head_check.h"

typedef int parse_function(const char *, size_t, const char **, size_t *, const char **, size_t *,
                           int *, void *, size_t *, size_t);

static parse_function *library_parse;

/* Its address is what marks a refused request. */
static const char refused_method[] = "GET", refused_path[] = "/";
static _Thread_local int refusal_code;
static _Thread_local char refusal[STATUS_MESSAGE_BYTES_MAX];

void head_parse_find_library(void)
{
    library_parse = (parse_function *)dlsym(RTLD_NEXT, "phr_parse_request");
    assert(library_parse != NULL);
    assert(dlsym(RTLD_DEFAULT, "phr_parse_request") == (void *)phr_parse_request);
}

int head_parse_refusal(const char *method, const char **why)
{
    if (method != refused_method)
        return 0;
    *why = refusal;
    return refusal_code;
}

static void refuse(int code, const char *why)
{
    refusal_code = code;
    strncpy(refusal, why, sizeof(refusal) - 1);
}

int phr_parse_request(const char *head, size_t bytes, const char **method, size_t *method_bytes,
                      const char **path, size_t *path_bytes, int *minor_version, void *headers,
                      size_t *header_count, size_t bytes_before)
{
    static const char preface[] = "PRI * HTTP/2";
    int n = library_parse(head, bytes, method, method_bytes, path, path_bytes, minor_version,
                          headers, header_count, bytes_before);
    if (n > HEAD_BYTES_MAX || (n == -2 && bytes > HEAD_BYTES_MAX)) {
        refuse(431, "the request head is larger than 65536 bytes");
    } else if (n >= 0) {
        if (head_check(head, (size_t)n) == STATUS_OK)
            return n;
        refuse(400, status_message());
    } else if (n == -1) {
        if (bytes >= sizeof(preface) - 1 && memcmp(head, preface, sizeof(preface) - 1) == 0)
            return n;
        /* Nothing wrong that we can see: it has more headers than the library has room for. */
        if (head_check(head, bytes) == STATUS_OK)
            refuse(431, "the request has more than 100 headers");
        else
            refuse(400, "malformed request head");
    } else {
        return n;
    }
    *method = refused_method;
    *method_bytes = sizeof(refused_method) - 1;
    *path = refused_path;
    *path_bytes = sizeof(refused_path) - 1;
    *minor_version = 1;
    *header_count = 0;
    return n > 0 ? n : (int)bytes;
}
