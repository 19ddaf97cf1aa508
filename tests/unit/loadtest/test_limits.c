/* What is asked for has limits, and files must be what they claim to be: errors name the place. */
#include "loadtest/memory.h"
#include "loadtest/options.h"
#include "loadtest/report/report.h"
#include "loadtest/workload/quantity.h"
#include "loadtest/workload/request_source.h"
#include "loadtest/workload/trace.h"
#include "tests/support/temporary.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[TEMPORARY_FOLDER_BYTES];

static void begin(void)
{
    temporary_make(folder);
}

static void end(void)
{
    temporary_remove(folder);
}

TestSuite(limits, .init = begin, .fini = end);

static const char *file_with(const char *text)
{
    static char path[TEMPORARY_FOLDER_BYTES + 8];
    temporary_write_text(folder, "file", text);
    snprintf(path, sizeof path, "%s/file", folder);
    return path;
}

/* The last failure's message holds these words. */
static void expect_words(const char *words, const char *about)
{
    cr_expect(strstr(status_message(), words) != NULL, "%s: \"%s\" lacks \"%s\"", about,
              status_message(), words);
}

Test(limits, lengths_and_durations)
{
    static const char *const too_long[] = {"1000001", "uniform:5:10000000", "lognormal:1e7:1",
                                           "40:max=1000001"};
    length_spec spec;
    for (size_t i = 0; i < sizeof too_long / sizeof *too_long; i++) {
        cr_expect_eq(length_parse(&spec, too_long[i]), STATUS_INVALID_ARGUMENT);
        expect_words("1000000 tokens", too_long[i]);
    }
    cr_expect_eq(length_parse(&spec, "1000000"), STATUS_OK);
    char text[96];
    snprintf(text, sizeof text, "file:%s", file_with("3\n1000001\n"));
    cr_expect_eq(length_parse(&spec, text), STATUS_INVALID_ARGUMENT);
    expect_words("file:2: expected a length from 1 to 1000000", text);
    uint64_t ns = 7;
    cr_expect_eq(quantity_duration("367d", &ns), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(quantity_duration("1e9h", &ns), STATUS_INVALID_ARGUMENT);
    expect_words("366 days", "1e9h");
    cr_expect_eq(ns, 7);
    cr_expect_eq(quantity_duration("8784h", &ns), STATUS_OK);
}

static status read_trace(trace *t, const char *text, double speed)
{
    char *copy = memory_copy_string(text, strlen(text));
    *t = (trace){0};
    status s = trace_parse(t, copy, "log", speed);
    free(copy);
    return s;
}

Test(limits, times_of_a_trace)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"0\n1e308\n", "log:2: 1e+308 s after the first"},
        {"1e308\n-1e308\n0\n", "log:1: inf s after the first"},
        {"nan\n", "log:1: no time"},
        {"0\ninf\n", "log:2: no time"},
        {"{\"time\":1}\n{\"time\":1e300}\n", "log:2: 1e+300 s"},
        {"0 7\n1 1000001\n", "log:2: a length of 1000001; a request has at most 1000000 tokens"},
        {"{\"time\":1,\"tokens\":99999999999}\n", "log:1: a length of 99999999999"},
    };
    trace t;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_eq(read_trace(&t, wrong[i].text, 1), STATUS_INVALID_ARGUMENT, "%s",
                     wrong[i].text);
        expect_words(wrong[i].words, wrong[i].text);
    }
    /* A year at twice the speed is half a year. */
    cr_expect_eq(read_trace(&t, "0\n50000000\n", 1), STATUS_INVALID_ARGUMENT);
    cr_assert_eq(read_trace(&t, "50000000\n0\n25000000\n", 2), STATUS_OK, "%s", status_message());
    cr_expect_eq(t.entries[0].offset_ns, 0, "lines may be out of order");
    cr_expect_eq(t.entries[1].offset_ns, 12500000000000000u);
    cr_expect_eq(t.entries[2].offset_ns, 25000000000000000u);
    trace_dispose(&t);
    cr_assert_eq(read_trace(&t, "5\n5\n5\n", 1), STATUS_OK, "all at once");
    cr_expect_eq(t.entries[2].offset_ns, 0);
    trace_dispose(&t);
}

static const char kserve[] = "{\"name\":\"m\",\"inputs\":[{\"name\":\"input_ids\",\"datatype\":"
                             "\"%s\",\"shape\":[-1,-1]}]}";

static status make_source(request_source *s, const source_options *o, const char *type)
{
    static const request_head head = {
        .method = "POST", .authority = "x", .path = "/", .scheme = "http"};
    char text[200];
    metadata m;
    snprintf(text, sizeof text, kserve, type);
    cr_assert_eq(metadata_parse_kserve(&m, text, strlen(text)), STATUS_OK);
    status made = request_source_create(s, o, &m, &head);
    metadata_dispose(&m);
    return made;
}

static status read_ids(request_source *s, const char *text, const char *type)
{
    source_options o = {.format = SOURCE_KSERVE, .rows = 1, .ids_file = file_with(text)};
    return make_source(s, &o, type);
}

Test(limits, lines_of_token_ids)
{
    static const struct {
        const char *text, *type, *words;
    } wrong[] = {
        {"[1, 2]\n[1,,2]\n", "INT64", "file:2: expected token ids"},
        {"[1, 2\n", "INT64", "file:1: expected token ids"},
        {"1 2]\n", "INT64", "file:1: expected token ids"},
        {"[[1, 2]]\n", "INT64", "expected token ids"},
        {"1, 2,\n", "INT64", "expected token ids"},
        {"[]\n", "INT64", "expected token ids"},
        {"1 2 three\n", "INT64", "found \"three\""},
        {"1 2.5\n", "INT64", "expected token ids"},
        {"5]6[7\n", "INT64", "expected token ids"},
        {"1 99999999999999999999999\n", "INT64", "99999999999999999999999 does not fit in INT64"},
        {"1\n-9223372036854775809\n", "INT64", "file:2: -9223372036854775809 does not fit"},
        {"3000000000\n", "INT32", "3000000000 does not fit in INT32"},
        {"-1\n", "UINT8", "-1 does not fit in UINT8"},
        {"\n\n", "INT64", "holds no requests"},
    };
    request_source s;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_eq(read_ids(&s, wrong[i].text, wrong[i].type), STATUS_INVALID_ARGUMENT, "%s",
                     wrong[i].text);
        expect_words(wrong[i].words, wrong[i].text);
    }
    cr_assert_eq(read_ids(&s, " [1, 2]\r\n\n1 2\n1,2\n 9223372036854775807 ,\t-1 \n", "INT64"),
                 STATUS_OK, "%s", status_message());
    cr_assert_eq(s.count, 4);
    for (int i = 0; i < 3; i++)
        cr_expect(strstr(s.payloads[i].body, "\"data\":[1,2]") != NULL, "%s", s.payloads[i].body);
    cr_expect(strstr(s.payloads[3].body, "[9223372036854775807,-1]") != NULL);
    request_source_dispose(&s);
}

Test(limits, what_the_bodies_hold_together)
{
    length_spec spec;
    cr_assert_eq(length_parse(&spec, "100000"), STATUS_OK);
    source_options o = {.format = SOURCE_KSERVE_BINARY,
                        .lengths = &spec,
                        .rows = 1,
                        .vocabulary = 9,
                        .pool = 100000,
                        .bytes_max = 16 << 20};
    request_source s;
    cr_expect_eq(make_source(&s, &o, "INT64"), STATUS_TOO_LARGE);
    expect_words("--pool", "800 kB each");
    expect_words("16 MiB", "800 kB each");
    o.pool = 0; /* not asked for: as many as are reasonable */
    cr_assert_eq(make_source(&s, &o, "INT64"), STATUS_OK, "%s", status_message());
    cr_expect_eq(s.count, 3);
    request_source_dispose(&s);
    cr_assert_eq(length_parse(&spec, "16"), STATUS_OK);
    cr_assert_eq(make_source(&s, &o, "INT64"), STATUS_OK, "%s", status_message());
    cr_expect_eq(s.count, 512);
    request_source_dispose(&s);
}

/* A report whose histogram of latencies has these members, and these counts. */
static status read_report(const char *latency, const char *counts)
{
    static const char empty[] = "{\"cell_bits\":6,\"octave_max\":37,\"cells\":[],\"count\":0}";
    char text[4000];
    snprintf(text, sizeof text,
             "{\"schema\":1,\"setup\":{\"duration_s\":1,\"loop\":\"open\"},%s\"timeline\":[{}],"
             "\"histograms\":{\"latency\":{\"cell_bits\":6,\"octave_max\":37,%s},\"latency_ok\":%s,"
             "\"service\":%s,\"lag\":%s,\"connection_wait\":%s,\"server\":%s,\"stages\":{},"
             "\"timeline\":{\"slice_ns\":200000000,\"latency\":[%s]}}}",
             counts, latency, empty, empty, empty, empty, empty, empty);
    result r = {0};
    status s = report_read(&r, file_with(text));
    result_dispose(&r);
    return s;
}

Test(limits, cells_of_a_report)
{
    static const char *const wrong[] = {
        "\"count\":0",
        "\"cells\":{\"5\":1},\"count\":1,\"sum\":5,\"max\":5",
        "\"cells\":7,\"count\":0",
        "\"cells\":[5],\"count\":0",
        "\"cells\":[[]],\"count\":0",
        "\"cells\":[[5]],\"count\":0",
        "\"cells\":[[5,1,1]],\"count\":1,\"sum\":5,\"max\":5",
        "\"cells\":[[\"5\",1]],\"count\":1,\"sum\":5,\"max\":5",
        "\"cells\":[[5.0,1]],\"count\":1,\"sum\":5,\"max\":5",
        "\"cells\":[[5,0]],\"count\":0,\"sum\":0,\"max\":0",
        "\"cells\":[[5,-1]],\"count\":0,\"sum\":5,\"max\":5",
        "\"cells\":[[-1,1]],\"count\":1,\"sum\":5,\"max\":5",
        "\"cells\":[[99999,1]],\"count\":1,\"sum\":5,\"max\":5",
        "\"cells\":[[5,1],[5,1]],\"count\":2,\"sum\":10,\"max\":5",
        "\"cells\":[[6,1],[5,1]],\"count\":2,\"sum\":11,\"max\":6",
        "\"cells\":[[5,4294967296]],\"count\":4294967296,\"sum\":5,\"max\":5",
        "\"cells\":[[5,4294967295],[6,1]],\"count\":4294967296,\"sum\":5,\"max\":6",
        "\"cells\":[[5,2]],\"count\":3,\"sum\":10,\"max\":5",
        "\"cells\":[[5,2]],\"count\":2,\"sum\":-10,\"max\":5",
        "\"cells\":[[5,2]],\"count\":2,\"sum\":10,\"max\":9",
        "\"cells\":[[5,2]],\"count\":2,\"sum\":10,\"max\":-1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_eq(read_report(wrong[i], ""), STATUS_CORRUPT, "%s", wrong[i]);
        expect_words("file: histograms.latency: ", wrong[i]);
    }
    static const char right[] = "\"cells\":[[5,1],[6,2]],\"count\":3,\"sum\":17,\"max\":6";
    cr_expect_eq(read_report(right, ""), STATUS_OK, "%s", status_message());
    cr_expect_eq(read_report(right, "\"requests\":-3,"), STATUS_CORRUPT);
    expect_words("requests", "-3");
    cr_expect_eq(read_report(right, "\"errors_by_kind\":{\"timeout\":\"many\"},"), STATUS_CORRUPT);
    expect_words("timeout", "many");
    cr_expect_eq(read_report(right, "\"codes\":{\"200\":-1},"), STATUS_CORRUPT);
}
