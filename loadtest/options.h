#ifndef LOADTEST_OPTIONS_H
#define LOADTEST_OPTIONS_H

#include "loadtest/report/result.h"
#include "loadtest/wire/request.h"
#include "loadtest/wire/target.h"
#include "loadtest/workload/arrival.h"
#include "loadtest/workload/request_source.h"

/* The command line, checked. Strings are borrowed from argv. */
#define OPTIONS_HEADERS_MAX 16
#define OPTIONS_FILES_MAX 64
#define OPTIONS_RATES_MAX 64

typedef enum options_mode {
    MODE_RUN,
    MODE_FIND_MAX,
    MODE_SWEEP,
    MODE_MERGE,
    MODE_COMPARE
} options_mode;

typedef struct options {
    options_mode mode;
    bool help, version;
    const char *url;
    /* what is sent */
    const char *model, *model_version, *method, *data_file, *ids_file, *text_file, *expect_file,
        *trace_file;
    enum {
        FORMAT_AUTO,
        FORMAT_KSERVE,
        FORMAT_BINARY,
        FORMAT_TENSORFLOW,
        FORMAT_OPENAI,
        FORMAT_TEI,
        FORMAT_RAW
    } format;
    length_spec lengths;
    const char *lengths_text;
    uint32_t rows, vocabulary, pool;
    bool shuffle;
    double tolerance, trace_speed;
    request_header headers[OPTIONS_HEADERS_MAX];
    size_t header_count;
    /* when */
    arrival_spec arrivals;
    const char *arrivals_text;
    double rate;             /* 0: not given */
    unsigned concurrency;    /* 0: not given */
    double dollars_per_hour; /* that the servers cost; 0: not known */
    uint64_t duration_ns, warm_up_ns, timeout_ns, spin_ns, seed;
    bool duration_given, spin_given;
    /* how */
    target_protocol protocol;
    const char *ca_file;
    bool insecure, realtime;
    unsigned threads, connections, connections_max, streams;
    /* objectives and search */
    result_slo slo[RESULT_SLO_MAX];
    size_t slo_count;
    double sweep[OPTIONS_RATES_MAX];
    size_t sweep_count;
    double resolution;
    unsigned confirmations;
    /* reports; "-" is standard output */
    const char *json, *csv, *html, *title;
    bool quiet;
    const char *files[OPTIONS_FILES_MAX]; /* of --merge and --compare */
    size_t file_count;
} options;

/* STATUS_INVALID_ARGUMENT names what is wrong, with the nearest option to an unknown one. */
status options_parse(options *o, int argc, char **argv) MUST_CHECK;
void options_dispose(options *o);
/* The text of --help. Static. */
const char *options_help(void);

#endif
