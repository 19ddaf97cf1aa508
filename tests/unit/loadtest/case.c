#include "tests/unit/loadtest/case.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/temporary.h"

static char folder[TEMPORARY_FOLDER_BYTES];

void case_begin(void)
{
    temporary_make(folder);
}

void case_end(void)
{
    temporary_remove(folder);
}

const char *case_file(const char *text)
{
    static char path[TEMPORARY_FOLDER_BYTES + 8];
    temporary_write_text(folder, "file", text);
    snprintf(path, sizeof path, "%s/file", folder);
    return path;
}

void case_expect_message(const char *words, const char *about)
{
    cr_expect(strstr(status_message(), words) != NULL, "%s: \"%s\" lacks \"%s\"", about,
              status_message(), words);
}

void case_fill_result(result *r, uint64_t base_ns)
{
    snprintf(r->setup.loop, sizeof r->setup.loop, "open");
    snprintf(r->setup.url, sizeof r->setup.url, "http://x/\"<é");
    r->setup.duration_ns = 2000000000u;
    r->setup.rate_target = 500;
    result_init(r, r->setup.duration_ns);
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t ns = base_ns + i * i * 1000;
        r->sent++;
        r->succeeded++;
        histogram_record(&r->latency, ns);
        histogram_record(&r->latency_ok, ns);
        histogram_record(&r->lag, ns / 1000);
        result_slice *slice = &r->slices[i * r->slice_count / 1000];
        slice->sent++;
        slice->succeeded++;
        histogram_record(&slice->latency, ns);
    }
    histogram_record(result_stage_of(r, "queue"), 1500000);
    histogram_record(&r->refused, base_ns / 10);
    r->errors[REQUEST_REFUSED] = 3;
    snprintf(r->reasons[REQUEST_REFUSED], RESULT_REASON_BYTES, "429: busy");
    r->codes[200] = 1000;
}
