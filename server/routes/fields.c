#include "server/routes/fields.h"

status request_read_fields(const request *r, arena *memory, request_field_fn read, void *into)
{
    json_scan scan;
    json_object o;
    json_string key;
    bool has_key;
    json_scan_init(&scan, r->body.data, r->body.bytes,
                   request_service(r)->options->limits.json_depth_max, false, memory);
    status failure = json_open_object(&scan, &o);
    while (!failure && !(failure = json_object_next(&scan, &o, &key, &has_key)) && has_key)
        failure = read(&scan, key, into);
    return failure ? failure : json_expect_end(&scan);
}
