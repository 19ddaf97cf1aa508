/* Regions of memory that clients share: Triton's system shared memory. Of CUDA's there are none. */
#include <stdlib.h>
#include <string.h>

#include "server/protocol/text/text_write.h"
#include "server/request/respond.h"
#include "server/routes/fields.h"
#include "server/routes/routes.h"

static void write_region(text_buffer *out, const shared_region *region)
{
    text_buffer_put(out, "{\"name\":");
    text_write_json_text(out, region->name);
    text_buffer_put(out, ",\"key\":");
    text_write_json_text(out, region->key);
    text_buffer_put(out, ",\"offset\":");
    text_write_u64(out, region->offset);
    text_buffer_put(out, ",\"byte_size\":");
    text_write_u64(out, region->bytes);
    text_buffer_put(out, "}");
}

static void serve_status(request *r)
{
    text_buffer body = {0};
    shared_region *found = calloc(SHARED_REGIONS_MAX, sizeof *found);
    int count =
        found != NULL ? shared_memory_list(request_service(r)->regions, r->route.name, found) : 0;
    text_buffer_put(&body, "[");
    for (int i = 0; i < count; i++) {
        text_buffer_put(&body, i ? "," : "");
        write_region(&body, &found[i]);
    }
    text_buffer_put(&body, "]");
    if (found == NULL)
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for the response");
    else if (count == 0 && r->route.name_bytes > 0)
        respond_error(r, 404, "no shared memory region of that name is registered");
    else
        respond_buffer(r, 200, "application/json", &body);
    text_buffer_dispose(&body);
    free(found);
}

static status set_text(char to[SHARED_NAME_BYTES], const char *field, json_string text)
{
    if (text.bytes >= SHARED_NAME_BYTES || memchr(text.text, 0, text.bytes) != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\" has %zu bytes, or a zero byte", field,
                           text.bytes);
    memcpy(to, text.text, text.bytes);
    to[text.bytes] = 0;
    return STATUS_OK;
}

static status read_number(json_scan *s, uint64_t *out)
{
    int64_t number;
    status failure = json_read_i64(s, &number);
    if (!failure && number < 0)
        return json_fail(s, "a number that is not negative before this");
    *out = failure ? 0 : (uint64_t)number;
    return failure;
}

/* {"key": "/name", "offset": 0, "byte_size": N} */
static status read_field(json_scan *s, json_string key, void *into)
{
    shared_region *out = into;
    json_string text;
    if (json_string_is(key, "offset"))
        return read_number(s, &out->offset);
    if (json_string_is(key, "byte_size"))
        return read_number(s, &out->bytes);
    if (!json_string_is(key, "key"))
        return status_fail(STATUS_UNSUPPORTED, "\"%.*s\" is not supported",
                           (int)(key.bytes < 200 ? key.bytes : 200), key.text);
    status failure = json_read_string(s, &text);
    return failure ? failure : set_text(out->key, "key", text);
}

static void serve_register(request *r)
{
    arena memory = {0};
    shared_region region = {.offset = 0};
    memcpy(region.name, r->route.name, r->route.name_bytes);
    status failure = request_read_fields(r, &memory, read_field, &region);
    if (!failure)
        failure = shared_memory_register(request_service(r)->regions, &region);
    arena_dispose(&memory);
    if (failure)
        respond_status(r, failure, status_message());
    else
        respond_text(r, 200, "application/json", "{}", 2);
}

void serve_shared_memory(request *r)
{
    switch (r->route.kind) {
    case ROUTE_SHARED_STATUS:
        serve_status(r);
        return;
    case ROUTE_SHARED_REGISTER:
        serve_register(r);
        return;
    case ROUTE_SHARED_UNREGISTER:
        shared_memory_unregister(request_service(r)->regions, r->route.name);
        respond_text(r, 200, "application/json", "{}", 2);
        return;
    case ROUTE_CUDA_STATUS: /* clients of Triton ask before they begin */
        if (r->route.name_bytes > 0)
            respond_error(r, 404, "no CUDA shared memory region of that name is registered");
        else
            respond_text(r, 200, "application/json", "[]", 2);
        return;
    case ROUTE_CUDA_UNREGISTER:
        respond_text(r, 200, "application/json", "{}", 2);
        return;
    default:
        respond_error(r, 501, "CUDA shared memory is not supported: system shared memory is");
    }
}
