#include "loadtest/combine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

status combine_merge(session *p)
{
    const options *o = &p->options;
    for (size_t i = 0; i < o->file_count; i++) {
        result part = {0};
        status s = report_read(&part, o->files[i]);
        if (!s && i > 0 && part.setup.duration_ns != p->result.setup.duration_ns)
            s = status_fail(STATUS_INVALID_ARGUMENT,
                            "%s: the duration differs from that of %s, so rates cannot be added",
                            o->files[i], o->files[0]);
        if (!s && i > 0 && strcmp(part.setup.loop, p->result.setup.loop) != 0)
            s = status_fail(STATUS_INVALID_ARGUMENT,
                            "%s: an open and a closed loop cannot be merged", o->files[i]);
        if (!s && p->result.latency.count + part.latency.count > UINT32_MAX)
            s = status_fail(STATUS_TOO_LARGE, "%s: together more than %" PRIu32 " requests",
                            o->files[i], UINT32_MAX);
        if (s) {
            result_dispose(&part);
            return s;
        }
        if (i == 0) {
            p->result = part;
            continue;
        }
        result_setup *into = &p->result.setup;
        result_merge(&p->result, &part);
        into->rate_target += part.setup.rate_target;
        into->concurrency += part.setup.concurrency;
        into->threads += part.setup.threads;
        into->connections += part.setup.connections;
        into->parts += part.setup.parts;
        result_dispose(&part);
    }
    return STATUS_OK;
}

status combine_compare(session *p)
{
    const options *o = &p->options;
    result other = {0};
    status s = report_read(&p->result, o->files[0]);
    if (!s)
        s = report_read(&other, o->files[1]);
    if (!s) {
        report_compare(&p->result, &other, o->files[0], o->files[1], stdout);
        p->report.result = &p->result;
        if (o->html != NULL)
            s = report_html(&p->report, &other, o->html);
    }
    result_dispose(&other);
    return s;
}
