#include "loadtest/discover.h"
#include "loadtest/memory.h"
#include "loadtest/options.h"
#include "loadtest/report/chart.h"
#include "loadtest/report/report.h"
#include "loadtest/report/result.h"
#include "loadtest/run/search.h"
#include "loadtest/workload/expect.h"
#include "loadtest/workload/quantity.h"
#include "loadtest/workload/request_source.h"
#include "loadtest/workload/trace.h"
#include "tests/support/temporary.h"

#include <criterion/criterion.h>
#include <math.h>
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

static const char *file_with(const char *text)
{
    static char path[TEMPORARY_FOLDER_BYTES + 8];
    temporary_write_text(folder, "file", text);
    snprintf(path, sizeof path, "%s/file", folder);
    return path;
}

TestSuite(quantity, .init = begin, .fini = end);
TestSuite(result, .init = begin, .fini = end);
TestSuite(expect, .init = begin, .fini = end);

Test(quantity, durations)
{
    uint64_t ns = 7;
    cr_expect_eq(quantity_duration("50ms", &ns), STATUS_OK);
    cr_expect_eq(ns, 50000000u);
    cr_expect_eq(quantity_duration("1.5", &ns), STATUS_OK);
    cr_expect_eq(ns, 1500000000u);
    cr_expect_eq(quantity_duration("2m", &ns), STATUS_OK);
    cr_expect_eq(ns, 120000000000u);
    for (const char *const *wrong =
             (const char *const[]){"", "ms", "5 ms", "-1s", "1e20", "nan", "5d", NULL};
         *wrong; wrong++)
        cr_expect_eq(quantity_duration(*wrong, &ns), STATUS_INVALID_ARGUMENT, "%s", *wrong);
    cr_expect_eq(ns, 120000000000u, "untouched by failures");
}

Test(quantity, a_lognormal_has_its_median_and_spread)
{
    length_spec spec;
    random_state r;
    random_seed(&r, 1);
    cr_assert_eq(length_parse(&spec, "lognormal:40:0.9:max=100000"), STATUS_OK);
    int below = 0, below_sigma = 0, n = 100000;
    for (int i = 0; i < n; i++) {
        uint32_t length = length_draw(&spec, &r);
        below += length <= 40;
        below_sigma += length <= 40 * exp(0.9);
    }
    cr_expect_float_eq(below / (double)n, 0.5, 0.015);
    cr_expect_float_eq(below_sigma / (double)n, 0.8413, 0.01);
}

Test(quantity, length_distributions)
{
    length_spec spec;
    random_state r;
    random_seed(&r, 1);
    cr_assert_eq(length_parse(&spec, "lognormal:400:2"), STATUS_OK);
    for (int i = 0; i < 1000; i++) {
        uint32_t length = length_draw(&spec, &r);
        cr_assert(length >= 1 && length <= LENGTH_MAX_DEFAULT);
    }
    cr_assert_eq(length_parse(&spec, "uniform:5:7"), STATUS_OK);
    bool seen[8] = {false};
    for (int i = 0; i < 1000; i++) {
        uint32_t length = length_draw(&spec, &r);
        cr_assert(length >= 5 && length <= 7);
        seen[length] = true;
    }
    cr_expect(seen[5] && seen[6] && seen[7]);
    char text[96];
    snprintf(text, sizeof text, "file:%s", file_with("# lengths\n3\n\n9\n"));
    cr_assert_eq(length_parse(&spec, text), STATUS_OK);
    for (int i = 0; i < 100; i++) {
        uint32_t length = length_draw(&spec, &r);
        cr_assert(length == 3 || length == 9);
    }
    length_dispose(&spec);
    file_with("3\nfour\n");
    cr_expect_eq(length_parse(&spec, text), STATUS_INVALID_ARGUMENT);
    cr_expect(strstr(status_message(), ":2:") != NULL, "%s", status_message());
    for (const char *const *wrong = (const char *const[]){"0", "x", "uniform:5", "uniform:7:5",
                                                          "lognormal:40", "40:max=", NULL};
         *wrong; wrong++)
        cr_expect_eq(length_parse(&spec, *wrong), STATUS_INVALID_ARGUMENT, "%s", *wrong);
}

/* Runs a search against a server that holds any rate up to `capacity`. */
static double search_for(double capacity, double start, double resolution, unsigned *runs)
{
    search s;
    search_begin(&s, start, resolution, 2);
    for (*runs = 0; s.stage != SEARCH_DONE; ++*runs) {
        cr_assert_lt(*runs, 100);
        search_tell(&s, s.rate <= capacity);
    }
    return s.rate;
}

Test(search, finds_the_highest_rate)
{
    static const double capacities[] = {3, 97, 1000, 54321};
    for (size_t i = 0; i < 4; i++)
        for (double start = 1; start < 1e6; start *= 7) {
            unsigned runs;
            double found = search_for(capacities[i], start, 0.03, &runs);
            cr_expect(found <= capacities[i] && found > capacities[i] / 1.031, "%g from %g: %g",
                      capacities[i], start, found);
            cr_expect_leq(runs, 75);
        }
}

Test(search, a_rate_that_held_by_luck_is_not_confirmed)
{
    search s;
    search_begin(&s, 100, 0.05, 2);
    int confirmations = 0;
    while (s.stage != SEARCH_DONE) {
        /* Holds up to 200 while it looks, up to 150 when asked again. */
        double capacity = s.stage == SEARCH_CONFIRM ? 150 : 200;
        confirmations += s.stage == SEARCH_CONFIRM;
        search_tell(&s, s.rate <= capacity);
    }
    cr_expect(s.rate <= 150 && s.rate > 150 / 1.06, "%g", s.rate);
    cr_expect_gt(confirmations, 3);
}

Test(search, one_hiccup_is_forgiven)
{
    search s;
    search_begin(&s, 100, 0.03, 2);
    for (int run = 0; s.stage != SEARCH_DONE; run++)
        search_tell(&s,
                    s.rate <= 1000 && run % 3 != 0); /* every third run fails, whatever its rate */
    cr_expect(s.rate <= 1000 && s.rate > 1000 / 1.031, "%g", s.rate);
}

Test(search, a_server_that_holds_nothing)
{
    unsigned runs;
    cr_expect_eq(search_for(0, 100, 0.05, &runs), 0);
}

Test(result, objectives)
{
    result_slo list[RESULT_SLO_MAX];
    size_t count = 0;
    cr_assert_eq(result_slo_parse(list, &count, "p99=50ms,p99.9=1s,errors=0.5%"), STATUS_OK);
    cr_assert_eq(count, 3);
    cr_expect_float_eq(list[1].quantile, 0.999, 1e-12);
    cr_expect_float_eq(list[2].limit, 0.005, 1e-12);
    cr_expect_eq(result_slo_limit_ns(list, count), 1000000000u);
    static result r;
    r.sent = 1000;
    for (int i = 0; i < 985; i++)
        histogram_record(&r.latency, 10000000);
    for (int i = 0; i < 15; i++)
        histogram_record(&r.latency, 60000000);
    double measured;
    cr_expect_not(result_slo_held(&r, &list[0], &measured));
    cr_expect_float_eq(measured, 60e6, 0.01 * 60e6);
    cr_expect(result_slo_held(&r, &list[1], &measured));
    r.errors[REQUEST_REFUSED] = 5;
    cr_expect(result_slo_held(&r, &list[2], &measured));
    r.errors[REQUEST_TIMEOUT] = 1;
    cr_expect_not(result_slo_held(&r, &list[2], &measured));
    for (const char *const *wrong = (const char *const[]){"p99", "p99<5", "p101=5ms", "q99=5ms",
                                                          "p99=x", "errors=x", NULL};
         *wrong; wrong++)
        cr_expect_eq(result_slo_parse(list, &count, *wrong), STATUS_INVALID_ARGUMENT, "%s", *wrong);
}

static void fill(result *r, uint64_t base_ns)
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

Test(result, a_report_can_be_read_again)
{
    result r = {0}, back = {0};
    fill(&r, 5000000);
    report p = {.result = &r};
    const char *path = file_with("");
    cr_assert_eq(report_json(&p, path), STATUS_OK, "%s", status_message());
    cr_assert_eq(report_read(&back, path), STATUS_OK, "%s", status_message());
    cr_expect_str_eq(back.setup.url, r.setup.url);
    cr_expect_eq(back.sent, 1000);
    cr_expect_eq(back.errors[REQUEST_REFUSED], 3);
    cr_expect_str_eq(back.reasons[REQUEST_REFUSED], "429: busy");
    cr_expect_eq(back.stage_count, 1);
    cr_expect_eq(back.refused.count, 1);
    for (const report_quantile *q = report_quantiles; q->name != NULL; q++) {
        cr_expect_eq(histogram_quantile(&back.latency, q->q), histogram_quantile(&r.latency, q->q));
        cr_expect_eq(histogram_quantile(&back.slices[3].latency, q->q),
                     histogram_quantile(&r.slices[3].latency, q->q));
    }
    result_dispose(&back);
    result_dispose(&r);
}

Test(result, merging_is_the_same_as_measuring_together)
{
    result a = {0}, b = {0};
    fill(&a, 1000000);
    fill(&b, 90000000);
    static histogram all;
    histogram_merge(&all, &a.latency);
    histogram_merge(&all, &b.latency);
    result_merge(&a, &b);
    cr_expect_eq(a.sent, 2000);
    cr_expect_eq(a.latency.count, 2000);
    cr_expect_eq(histogram_quantile(&a.latency, 0.7), histogram_quantile(&all, 0.7));
    cr_expect_eq(a.slices[0].sent, 2 * b.slices[0].sent);
    cr_expect_eq(a.stages[0].duration.count, 2);
    cr_expect_eq(a.refused.count, 2);
    result_dispose(&a);
    result_dispose(&b);
}

Test(result, broken_reports_are_refused)
{
    static const char *const wrong[] = {
        "",
        "{}",
        "[]",
        "{\"schema\":2}",
        "{\"schema\":1}",
        "{\"schema\":1,\"setup\":{\"duration_s\":1e300},\"histograms\":{}}",
        "{\"schema\":1,\"setup\":{\"duration_s\":1},\"histograms\":{\"latency\":{\"cell_bits\":6,"
        "\"octave_max\":37,\"cells\":[[99999,1]]}}}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        result r = {0};
        cr_expect_neq(report_read(&r, file_with(wrong[i])), STATUS_OK, "%s", wrong[i]);
        result_dispose(&r);
    }
}

Test(result, bounds_of_quantiles_hold_the_quantile)
{
    static histogram h;
    for (int i = 1; i <= 1000; i++)
        histogram_record(&h, (uint64_t)i * 1000000);
    /* 1.96 sqrt(1000 * 0.9 * 0.1) = 18.6 ranks to either side, and a cell's width. */
    result_bounds b = result_quantile_bounds(&h, 0.9);
    cr_expect(b.low > 870e6 && b.low < 890e6, "%g", b.low);
    cr_expect(b.high > 910e6 && b.high < 930e6, "%g", b.high);
    cr_expect_float_eq(b.value, 900e6, 8e6);
}

Test(expect, compares_what_is_named)
{
    expect *e;
    cr_assert_eq(
        expect_load(&e, file_with("{\"outputs\":[{\"name\":\"y\",\"data\":[1,2.5]}]}\n\n[1]\n"),
                    1e-3),
        STATUS_OK);
    cr_expect_eq(expect_count(e), 2);
    const struct {
        const char *body;
        bool right;
    } cases[] = {
        {"{\"id\":\"x\",\"outputs\":[{\"name\":\"y\",\"shape\":[2],\"data\":[1.0005,2.5]}]}", true},
        {"{\"outputs\":[{\"name\":\"y\",\"data\":[1.1,2.5]}]}", false},
        {"{\"outputs\":[{\"name\":\"z\",\"data\":[1,2.5]}]}", false},
        {"{\"outputs\":[{\"name\":\"y\",\"data\":[1]}]}", false},
        {"{\"outputs\":[]}", false},
        {"{}", false},
        {"not json", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int twice = 0; twice < 2; twice++) {
            char reason[200];
            response a = {.keep_body = true, .code = 200};
            response_body(&a, cases[i].body, strlen(cases[i].body));
            cr_expect_eq(expect_check(e, 0, &a, reason, sizeof reason), cases[i].right, "%s",
                         cases[i].body);
            cr_expect(expect_check(e, 9, &a, reason, sizeof reason), "no line, nothing to compare");
            text_buffer_dispose(&a.body);
        }
    expect_destroy(e);
}

Test(expect, binary_outputs_compare_like_JSON)
{
    expect *e;
    cr_assert_eq(
        expect_load(&e, file_with("{\"outputs\":[{\"data\":[1.5,-2]},{\"data\":[\"ab\"]}]}"), 1e-3),
        STATUS_OK);
    const char *json =
        "{\"outputs\":[{\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":8}},"
        "{\"datatype\":\"BYTES\",\"parameters\":{\"binary_data_size\":6}}]}";
    float values[] = {1.5f, -2};
    response a = {.keep_body = true, .code = 200, .header_json_bytes = strlen(json)};
    response_body(&a, json, strlen(json));
    response_body(&a, values, sizeof values);
    response_body(&a, "\2\0\0\0ab", 6);
    char reason[200] = "";
    cr_expect(expect_check(e, 0, &a, reason, sizeof reason), "%s", reason);
    a.body.data[strlen(json) + 3] ^= 0x10;
    cr_expect_not(expect_check(e, 0, &a, reason, sizeof reason));
    a.header_json_bytes = 1 << 20;
    cr_expect_not(expect_check(e, 0, &a, reason, sizeof reason), "a length beyond the body");
    text_buffer_dispose(&a.body);
    expect_destroy(e);
}

static trace read_trace(const char *text, double speed)
{
    trace t = {0};
    char *copy = memory_copy_string(text, strlen(text));
    cr_assert_eq(trace_parse(&t, copy, "log", speed), STATUS_OK, "%s", status_message());
    free(copy);
    return t;
}

Test(trace, formats)
{
    trace t = read_trace("0.5 40\n0.25\n# a comment\n\n1.5,7\n", 1);
    cr_assert_eq(t.count, 3);
    cr_expect_eq(t.entries[0].offset_ns, 0);
    cr_expect_eq(t.entries[1].offset_ns, 250000000u);
    cr_expect_eq(t.entries[1].length, 40);
    cr_expect_eq(t.entries[2].offset_ns, 1250000000u);
    cr_expect_eq(t.entries[2].length, 7);
    trace_dispose(&t);
    t = read_trace("{\"time\":\"2026-11-21T23:59:59.500Z\",\"tokens\":12}\n"
                   "{\"time\":\"2026-11-22T01:00:00.000+01:00\",\"body\":{\"a\":[1]}}\n",
                   2);
    cr_assert_eq(t.count, 2);
    cr_expect_eq(t.entries[1].offset_ns, 250000000u,
                 "half a second at twice the speed, another zone");
    cr_expect_eq(t.entries[0].length, 12);
    cr_expect_str_eq(t.entries[1].body, "{\"a\":[1]}");
    trace_dispose(&t);
    t = read_trace("1.2.3.4 - - [21/Nov/2026:14:13:20 +0000] \"POST / HTTP/1.1\" 200 5\n"
                   "1.2.3.4 - - [21/Nov/2026:14:13:20 +0000] \"POST / HTTP/1.1\" 200 5\n"
                   "1.2.3.4 - - [21/Nov/2026:15:13:21 +0100] \"POST / HTTP/1.1\" 200 5\n",
                   1);
    cr_assert_eq(t.count, 3);
    cr_expect_eq(t.entries[1].offset_ns, 500000000u, "spread over the second");
    cr_expect_eq(t.entries[2].offset_ns, 1000000000u);
    trace_dispose(&t);
}

Test(trace, an_access_log_of_penstock)
{
    trace t = read_trace(
        "{\"time_ms\":5000,\"method\":\"POST\",\"path\":\"/v2/models/m/"
        "infer\",\"total_us\":900000}\n"
        "{\"time_ms\":4500,\"method\":\"POST\",\"path\":\"/v2/models/m/"
        "infer\",\"total_us\":100000}\n"
        "{\"time_ms\":4400,\"method\":\"GET\",\"path\":\"/v2/health/ready\",\"total_us\":10}\n",
        1);
    cr_assert_eq(t.count, 2, "health checks are no load");
    cr_expect_eq(t.entries[1].offset_ns, 500000000u, "time_ms is when a request came");
    trace_dispose(&t);
}

Test(trace, lines_without_a_time_are_named)
{
    static const char *const wrong[] = {"1\nhello\n", "1\n{\"a\":1}\n", "1\n{\n", "1\n[xx]\n",
                                        "",           "\n#\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        trace t = {0};
        char *copy = memory_copy_string(wrong[i], strlen(wrong[i]));
        cr_expect_eq(trace_parse(&t, copy, "log", 1), STATUS_INVALID_ARGUMENT, "%s", wrong[i]);
        if (i < 4)
            cr_expect(strstr(status_message(), "log:2") != NULL, "%s", status_message());
        free(copy);
    }
}

static metadata two_inputs(void)
{
    metadata m;
    const char *text = "{\"name\":\"m\",\"inputs\":[{\"name\":\"input_ids\",\"datatype\":\"INT64\","
                       "\"shape\":[-1,-1]},"
                       "{\"name\":\"attention_mask\",\"datatype\":\"INT32\",\"shape\":[-1,-1]}]}";
    cr_assert_eq(metadata_parse_kserve(&m, text, strlen(text)), STATUS_OK);
    return m;
}

static char *written(const source_options *o, const metadata *m, uint32_t length,
                     const int64_t *ids, uint64_t *json_bytes, size_t *bytes)
{
    random_state r;
    random_seed(&r, 1);
    text_buffer b = {0};
    cr_assert_eq(request_source_write(&b, json_bytes, o, m, length, ids, &r), STATUS_OK);
    text_buffer_string(&b);
    *bytes = b.bytes;
    return b.data;
}

Test(request_source, bodies)
{
    metadata m = two_inputs();
    int64_t ids[] = {101, 5, 102};
    uint64_t json_bytes;
    size_t bytes;
    source_options o = {.format = SOURCE_KSERVE, .rows = 2, .vocabulary = 10};
    char *text = written(&o, &m, 3, ids, &json_bytes, &bytes);
    cr_expect_str_eq(text, "{\"inputs\":[{\"name\":\"input_ids\",\"shape\":[2,3],\"datatype\":"
                           "\"INT64\",\"data\":[101,5,102,101,5,102]},"
                           "{\"name\":\"attention_mask\",\"shape\":[2,3],\"datatype\":\"INT32\","
                           "\"data\":[1,1,1,1,1,1]}]}");
    cr_expect_eq(json_bytes, 0);
    free(text);
    o.format = SOURCE_TENSORFLOW;
    text = written(&o, &m, 3, ids, &json_bytes, &bytes);
    cr_expect_str_eq(text, "{\"instances\":[{\"input_ids\":[101,5,102],\"attention_mask\":[1,1,1]},"
                           "{\"input_ids\":[101,5,102],\"attention_mask\":[1,1,1]}]}");
    free(text);
    o.format = SOURCE_KSERVE_BINARY;
    text = written(&o, &m, 3, ids, &json_bytes, &bytes);
    cr_assert_eq(bytes, json_bytes + 6 * 8 + 6 * 4);
    cr_expect_eq(text[json_bytes - 1], '}');
    int64_t second;
    memcpy(&second, text + json_bytes + 8, 8);
    cr_expect_eq(second, 5);
    int32_t mask;
    memcpy(&mask, text + json_bytes + 48, 4);
    cr_expect_eq(mask, 1);
    free(text);
    metadata_dispose(&m);
}

Test(request_source, made_ids_are_inside_the_vocabulary)
{
    metadata m = two_inputs();
    uint64_t json_bytes;
    size_t bytes;
    source_options o = {.format = SOURCE_KSERVE, .rows = 1, .vocabulary = 7};
    char *text = written(&o, &m, 500, NULL, &json_bytes, &bytes);
    const char *at = strstr(text, "\"data\":[") + 8;
    for (int i = 0; i < 500; i++) {
        long value = strtol(at, (char **)&at, 10);
        cr_assert(value >= 0 && value < 7);
        at++;
    }
    free(text);
    metadata_dispose(&m);
}

Test(metadata, broken_metadata_is_refused)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"inputs\":[]}",
        "{\"inputs\":[{}]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP31\",\"shape\":[1]}]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,\"a\"]}]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,1,1,1,1,1,1,1,1]}]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        metadata m;
        cr_expect_neq(metadata_parse_kserve(&m, wrong[i], strlen(wrong[i])), STATUS_OK, "%s",
                      wrong[i]);
        cr_expect_neq(metadata_parse_tensorflow(&m, wrong[i], strlen(wrong[i])), STATUS_OK);
    }
}

Test(discover, paths)
{
    char model[64];
    source_format format;
    cr_expect(discover_path("/v2/models/a/infer", model, sizeof model, &format));
    cr_expect_str_eq(model, "a");
    cr_expect(discover_path("/v2/models/bert/versions/3/infer?x=1", model, sizeof model, &format));
    cr_expect_str_eq(model, "bert");
    cr_expect_eq(format, SOURCE_KSERVE);
    cr_expect(discover_path("/v1/models/half:predict", model, sizeof model, &format));
    cr_expect_str_eq(model, "half");
    cr_expect_eq(format, SOURCE_TENSORFLOW);
    cr_expect_not(discover_path("/v2/models/a", model, sizeof model, &format));
    cr_expect_not(discover_path("/predict", model, sizeof model, &format));
    cr_expect_not(discover_path("/v2/models//infer", model, sizeof model, &format));
}

static status parse_options(options *o, const char *line)
{
    static char copy[512];
    static char *argv[40];
    int argc = 0;
    snprintf(copy, sizeof copy, "penstock-load %s", line);
    for (char *at = strtok(copy, " "); at != NULL; at = strtok(NULL, " "))
        argv[argc++] = at;
    return options_parse(o, argc, argv);
}

Test(options, what_follows_from_the_rest)
{
    options o;
    cr_assert_eq(parse_options(&o, "http://x --rate 50 --duration 5s --json"), STATUS_OK);
    cr_expect_str_eq(o.json, "-");
    cr_expect_eq(o.duration_ns, 5000000000u);
    cr_assert_eq(parse_options(&o, "--json out.json --rate=50 http://x"), STATUS_OK);
    cr_expect_str_eq(o.json, "out.json");
    cr_expect_str_eq(o.url, "http://x");
    cr_assert_eq(parse_options(&o, "--json http://x --concurrency 4"), STATUS_OK);
    cr_expect_str_eq(o.json, "-");
    cr_expect_str_eq(o.url, "http://x");
    cr_assert_eq(parse_options(&o, "http://x --sweep 10:30:3"), STATUS_OK);
    cr_assert_eq(o.sweep_count, 3);
    cr_expect_float_eq(o.sweep[1], 20, 1e-9);
    cr_assert_eq(parse_options(&o, "--compare a b"), STATUS_OK);
    cr_expect_eq(parse_options(&o, "--compare a"), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(parse_options(&o, "http://x http://y --rate 5"), STATUS_INVALID_ARGUMENT);
    cr_expect_eq(parse_options(&o, "http://x --concurency 5"), STATUS_INVALID_ARGUMENT);
    cr_expect(strstr(status_message(), "--concurrency") != NULL, "%s", status_message());
}

Test(chart, text_cannot_become_markup)
{
    text_buffer b = {0};
    chart_escape(&b, "<script>&\"é\xff\x01\xc3");
    cr_expect_str_eq(text_buffer_string(&b), "&lt;script&gt;&amp;&quot;é???");
    text_buffer_dispose(&b);
}

Test(chart, hard_data_draws_without_nonsense)
{
    double x[] = {0, 1, 2}, y[] = {NAN, NAN, NAN}, zero[] = {0, 0, 0}, same[] = {5, 5, 5};
    const double *const all[] = {y, zero, same};
    for (int axis = CHART_LINEAR; axis <= CHART_PERCENTILE; axis++)
        for (int i = 0; i < 3; i++) {
            text_buffer b = {0};
            chart c = {.title = "t",
                       .x_label = "x",
                       .y_label = "y",
                       .x_axis = axis,
                       .y_axis = axis == CHART_LOG,
                       .series = {{"s", x, all[i], 3, 0, true, false}},
                       .series_count = 1};
            chart_draw(&b, &c);
            const char *text = text_buffer_string(&b);
            cr_expect(strstr(text, "nan") == NULL && strstr(text, "inf") == NULL, "%s", text);
            text_buffer_dispose(&b);
        }
}
