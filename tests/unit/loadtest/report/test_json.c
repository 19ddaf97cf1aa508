#include "loadtest/report/report.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/unit/loadtest/case.h"

TestSuite(report_json, .init = case_begin, .fini = case_end);

Test(report_json, a_report_can_be_read_again)
{
    result r = {0}, back = {0};
    case_fill_result(&r, 5000000);
    report p = {.result = &r};
    const char *path = case_file("");
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

Test(report_json, broken_reports_are_refused)
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
        cr_expect_neq(report_read(&r, case_file(wrong[i])), STATUS_OK, "%s", wrong[i]);
        result_dispose(&r);
    }
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
    status s = report_read(&r, case_file(text));
    result_dispose(&r);
    return s;
}

Test(report_json, cells_of_a_report)
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
        case_expect_message("file: histograms.latency: ", wrong[i]);
    }
    static const char right[] = "\"cells\":[[5,1],[6,2]],\"count\":3,\"sum\":17,\"max\":6";
    cr_expect_eq(read_report(right, ""), STATUS_OK, "%s", status_message());
    cr_expect_eq(read_report(right, "\"requests\":-3,"), STATUS_CORRUPT);
    case_expect_message("requests", "-3");
    cr_expect_eq(read_report(right, "\"errors_by_kind\":{\"timeout\":\"many\"},"), STATUS_CORRUPT);
    case_expect_message("timeout", "many");
    cr_expect_eq(read_report(right, "\"codes\":{\"200\":-1},"), STATUS_CORRUPT);
}
