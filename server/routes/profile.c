/* POST /v2/profile: an accelerator is profiled for some seconds, and the response is what its
 * plugin recorded. The device's process ends the profile by itself, so a client that goes leaves
 * nothing behind. One request is served at a time: the plugin records one profile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/request/respond.h"
#include "server/request/work.h"
#include "server/routes/fields.h"
#include "server/routes/routes.h"

#define SECONDS_DEFAULT 3
#define SECONDS_MAX 60
#define NAME_BYTES 64

typedef struct profile {
    request_work work; /* first */
    device *of;
    int64_t seconds;
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
    void *data; /* malloc'd */
    size_t bytes;
} profile;

static profile *profile_of(request *r)
{
    return r->waits_for;
}

/* --- what is asked --- */

typedef struct asked {
    int64_t seconds;
    char device[NAME_BYTES]; /* "": the first accelerator */
} asked;

static status read_device(json_scan *scan, char name[NAME_BYTES])
{
    json_string text;
    status failure = json_read_string(scan, &text);
    if (!failure && text.bytes >= NAME_BYTES)
        failure = status_fail(STATUS_NOT_FOUND, "there is no such device");
    if (!failure)
        snprintf(name, NAME_BYTES, "%.*s", (int)text.bytes, text.text);
    return failure;
}

static status read_field(json_scan *scan, json_string key, void *into)
{
    asked *a = into;
    return json_string_is(key, "seconds")  ? json_read_i64(scan, &a->seconds)
           : json_string_is(key, "device") ? read_device(scan, a->device)
                                           : json_skip_value(scan);
}

static status read_body(const request *r, asked *a)
{
    arena memory = {0};
    if (r->body.bytes == 0)
        return STATUS_OK;
    status failure = request_read_fields(r, &memory, read_field, a);
    arena_dispose(&memory);
    if (!failure && (a->seconds < 1 || a->seconds > SECONDS_MAX))
        failure = status_fail(STATUS_INVALID_ARGUMENT, "seconds: from 1 to %d", SECONDS_MAX);
    return failure;
}

/* The device of that name; without a name the first accelerator that is there. */
static status find_device(const service *s, const char *name, device **out)
{
    for (int i = 0; i < s->device_count; i++) {
        device *d = s->devices[i];
        if (name[0] != 0 ? strcmp(d->name, name) != 0
                         : d->interface->profile == NULL || device_is_absent(d))
            continue;
        if (d->interface->profile == NULL)
            return status_fail(STATUS_UNSUPPORTED, "device \"%s\" has no profiler", d->name);
        *out = d;
        return STATUS_OK;
    }
    if (name[0] != 0)
        return status_fail(STATUS_NOT_FOUND, "there is no device \"%s\"", name);
    return status_fail(STATUS_NOT_FOUND, "there is no accelerator to profile");
}

/* --- the answer --- */

static void refuse(request *r, status failure, const char *message)
{
    if (failure == STATUS_UNSUPPORTED)
        respond_error(r, 501, message);
    else if (failure == STATUS_RESOURCE_EXHAUSTED)
        respond_error(r, 409, message); /* another profile is recorded */
    else
        respond_status(r, failure, message);
}

static void drop(profile *p)
{
    free(p->data);
    free(p);
}

static void note(profile *p, status result)
{
    p->result = result;
    snprintf(p->error, sizeof p->error, "%s", result ? status_message() : "");
}

/* --- its stages --- */

static void take_data(request_work *w)
{
    profile *p = (profile *)w;
    note(p, p->of->interface->take_profile(p->of, &p->data, &p->bytes));
}

static void answer(request *r)
{
    profile *p = profile_of(r);
    r->on_cancel = NULL;
    if (!request_has_ended(r) && p->result)
        refuse(r, p->result, p->error);
    else if (!request_has_ended(r)) {
        respond_compressed(r, "application/octet-stream", CODING_IDENTITY, p->data, p->bytes);
        p->data = NULL; /* the response's */
    }
    drop(p);
}

static void give_up(request *r)
{
    profile *p = profile_of(r);
    r->on_cancel = NULL;
    drop(p);
    respond_status(r, STATUS_CANCELLED, "the client is gone");
}

/* Nobody waits for it any more, while it is recorded. */
static void cancel_wait(request *r)
{
    bool has_ended = request_has_ended(r);
    request_due(r, has_ended ? NULL : give_up, 0);
    if (!has_ended) {
        r->on_cancel = cancel_wait; /* the stream may be closed before that */
        return;
    }
    drop(profile_of(r));
    request_advance(r, LIFE_WORK_DONE, clock_now_ns());
}

static void take(request *r)
{
    profile *p = profile_of(r);
    p->work.run = take_data;
    if (!request_offload(r, &p->work, true, answer)) {
        note(p, status_fail(STATUS_UNAVAILABLE, "there is no thread for it now"));
        answer(r);
    }
}

static void wait_for_end(request *r)
{
    profile *p = profile_of(r);
    r->on_cancel = NULL;
    if (request_has_ended(r) || p->result) {
        answer(r);
        return;
    }
    r->on_cancel = cancel_wait;
    request_due(r, take, clock_now_ns() + (uint64_t)p->seconds * 1000000000u);
}

static void begin(request_work *w)
{
    profile *p = (profile *)w;
    note(p, p->of->interface->profile(p->of, (uint64_t)p->seconds * 1000000000u));
}

void serve_profile(request *r)
{
    asked a = {.seconds = SECONDS_DEFAULT};
    device *of = NULL;
    status failure = read_body(r, &a);
    if (!failure)
        failure = find_device(request_service(r), a.device, &of);
    profile *p = failure ? NULL : calloc(1, sizeof *p);
    if (!failure && p == NULL)
        failure = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a profile");
    if (failure) {
        refuse(r, failure, status_message());
        return;
    }
    p->of = of;
    p->seconds = a.seconds;
    p->work.run = begin;
    p->work.cancel.deadline_ns = UINT64_MAX;
    if (request_offload(r, &p->work, false, wait_for_end))
        return;
    free(p);
    respond_status(r, STATUS_UNAVAILABLE, "there is no thread for it now");
}
